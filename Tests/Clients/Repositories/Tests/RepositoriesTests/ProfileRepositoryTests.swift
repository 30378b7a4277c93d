import DataStore
import Multicast
import MulticastTesting
import Repositories
import Repository
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(15))) struct ProfileRepositoryTests {
  /// A client that consists of a closure.
  private struct Client: ProfileClient {
    let fetch: @Sendable (String) async throws(ProfileError) -> Profile

    func profile(of userID: String) async throws(ProfileError) -> Profile { try await fetch(userID) }
  }

  private let store = InMemoryStore()

  @Test func `A profile is fetched once while it is fresh, and every observer receives it`() async throws {
    let names = Mutex(["Jake", "Jake Lin"])
    let profiles = profileRepository(
      Client { (_) throws(ProfileError) in Profile(name: names.withLock { $0.removeFirst() }) }, store: store)
    let observers = [profiles.values(of: "0").subscribe(), profiles.values(of: "0").subscribe()]
    try await profiles.refresh("0")
    try await profiles.refresh("0")
    for observer in observers { #expect(await observer.first(1) == [Profile(name: "Jake")]) }
    try await profiles.reload("0")
    for observer in observers { #expect(await observer.first(1) == [Profile(name: "Jake Lin")]) }
  }

  @Test func `Observing a profile fetches it, and fetches it again when it is stale`() async throws {
    let names = Mutex(["Jake", "Jake Lin"])
    let profiles = profileRepository(
      Client { (_) throws(ProfileError) in Profile(name: names.withLock { $0.removeFirst() }) }, store: store)
    let observers = [LoadingPolicy.whileObserved(), .whileObserved(), .never].map {
      profiles.values(of: "0", loading: $0).subscribe()
    }
    for observer in observers { #expect(await observer.first(1) == [Profile(name: "Jake")]) }
    await profiles.invalidate(.all)
    for observer in observers { #expect(await observer.first(1) == [Profile(name: "Jake Lin")]) }
  }

  @Test func `Without a network, reloading throws and the stored profile stays visible`() async throws {
    try await store.save(Profile(name: "Jake"), for: StoreKey("profile", id: "0"))
    let profiles = profileRepository(Client { (_) throws(ProfileError) in throw .offline }, store: store)
    let states = profiles.states(of: "0").subscribe()
    #expect(await states.first(1).map(\.presence) == [.value(Profile(name: "Jake"))])
    await #expect(throws: RepositoryError<ProfileError>.server(.offline)) { try await profiles.reload("0") }
    let reloadStates = await states.first(2)
    #expect(reloadStates.map(\.value) == [Profile(name: "Jake"), Profile(name: "Jake")])
    #expect(reloadStates.map(\.isLoading) == [true, false])
    #expect(reloadStates.map(\.failure) == [nil, .server(.offline)])
    #expect(await profiles.values(of: "0").subscribe().first(1) == [Profile(name: "Jake")])
  }

  @Test func `A slow repository doesn't replace a newer profile that another one has stored`() async throws {
    let gate = Gate()
    let fetchCount = Mutex(0)
    let slow = profileRepository(
      Client { (_) async throws(ProfileError) in
        let isFirst = fetchCount.withLock { count in
          count += 1
          return count == 1
        }
        if !isFirst { return Profile(name: "new") }
        await gate.pass()
        return Profile(name: "old")
      }, store: store)
    let fast = profileRepository(Client { (_) throws(ProfileError) in Profile(name: "new") }, store: store)
    // The newer profile is stored while the slow repository's first request is in flight.
    let load = Task { try await slow.reload("0") }
    await gate.arrivals()
    try await fast.reload("0")
    gate.open()
    try await load.value
    #expect(try await store.load(StoreKey<Profile>("profile", id: "0"))?.value == Profile(name: "new"))
    #expect(await slow.values(of: "0").subscribe().first(1) == [Profile(name: "new")])
    // The slow repository has discarded the old profile and repeated its request.
    #expect(fetchCount.withLock { $0 } == 2)
  }
}
