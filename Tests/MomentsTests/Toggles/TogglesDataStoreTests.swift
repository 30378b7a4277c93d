import DataStore
import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct TogglesDataStoreTests {
  private enum ForeignToggle: String, ToggleType { case isLikeButtonForMomentEnabled }

  private static let like = InternalToggle.isLikeButtonForMomentEnabled
  /// A key that belongs to no toggle.
  private static let foreignKey = StoreKey<Bool>("toggle-foreign")

  @Test(arguments: InternalToggle.allCases)
  func `A toggle is off until it is turned on, independently of other values`(_ toggle: InternalToggle) async throws {
    let store = InMemoryStore()
    let toggles = TogglesDataStore(store)
    try await store.save(true, for: Self.foreignKey)
    #expect(try await !toggles.isToggleOn(toggle))
    try await toggles.update(toggle, isOn: true)
    for other in InternalToggle.allCases { #expect(try await toggles.isToggleOn(other) == (other == toggle)) }
    try await toggles.update(toggle, isOn: false)
    #expect(try await !toggles.isToggleOn(toggle))
    #expect(try await store.load(Self.foreignKey)?.value == true)
  }

  @Test func `A toggle of another type is off, and can't be updated or observed`() async throws {
    let toggles = TogglesDataStore(InMemoryStore())
    let foreign = ForeignToggle.isLikeButtonForMomentEnabled
    try await toggles.update(Self.like, isOn: true)
    #expect(try await !toggles.isToggleOn(foreign))
    let refusal = TogglesDataStoreError.foreignToggle("ForeignToggle.isLikeButtonForMomentEnabled")
    await #expect(throws: refusal) { try await toggles.update(foreign, isOn: false) }
    await #expect(throws: refusal) { _ = try await toggles.states(of: foreign) }
    #expect(try await toggles.isToggleOn(Self.like))
  }

  @Test func `An updated toggle keeps its state when the store is reopened`() async throws {
    let folder = TemporaryFolder()
    try await TogglesDataStore(FileStore(folder: folder.url)).update(Self.like, isOn: true)
    let reopened = TogglesDataStore(FileStore(folder: folder.url))
    #expect(try await reopened.isToggleOn(Self.like))
    for await isOn in try await reopened.states(of: Self.like) {
      #expect(isOn)
      break
    }
  }

  @Test func `An observer of a toggle receives its state, then each of its changes and no others`() async throws {
    let store = InMemoryStore()
    let toggles = TogglesDataStore(store)
    let states = try await toggles.states(of: Self.like)
    try await toggles.update(Self.like, isOn: true)
    try await store.save(true, for: Self.foreignKey)
    try await toggles.update(Self.like, isOn: false)
    try await toggles.update(Self.like, isOn: true)
    var seen: [Bool] = []
    for await isOn in states {
      seen.append(isOn)
      if seen.count == 4 { break }
    }
    #expect(seen == [false, true, false, true])
  }

  @Test func `Updating a toggle that can't be stored throws`() async throws {
    let folder = try TemporaryFolder.existing()
    let blocked = folder.url.appending(path: "store")
    // A file in place of the folder makes every call of the store fail.
    try Data().write(to: blocked)
    let toggles = TogglesDataStore(FileStore(folder: blocked))
    do throws(TogglesDataStoreError) {
      try await toggles.update(Self.like, isOn: true)
      Issue.record("The update didn't throw.")
    } catch {
      guard case .store = error else {
        Issue.record("Unexpected error \(error)")
        return
      }
    }
  }

  // MARK: - Likes

  @Test(.requiresBFF) func `The toggle decides whether the next request includes likes`() async throws {
    try await BFFServer.run { server in
      let toggles = TogglesDataStore(InMemoryStore())
      let session = GetMomentsByUserIDSession(
        apiSession: server.apiSession, togglesDataStore: toggles,
        onUnreadableToggle: { Issue.record("Unexpected error \($0)") })
      var isLiked = [try await session.getMoments(userID: "0").moments[0].isLiked]
      for isOn in [true, false] {
        try await toggles.update(Self.like, isOn: isOn)
        isLiked.append(try await session.getMoments(userID: "0").moments[0].isLiked)
      }
      #expect(isLiked == [nil, true, nil])
      #expect(try await server.received().map { $0.variables["withLikes"] } == [false, true, false])
    }
  }

  @Test(.requiresBFF) func `A toggle that can't be read is reported and counts as off`() async throws {
    struct Unreadable: TogglesDataStoreType {
      func isToggleOn(_ toggle: any ToggleType) async throws(TogglesDataStoreError) -> Bool {
        throw .foreignToggle("\(toggle)")
      }
      func update(_ toggle: any ToggleType, isOn: Bool) async throws(TogglesDataStoreError) {}
      func states(
        of toggle: any ToggleType
      ) async throws(TogglesDataStoreError) -> any AsyncSequence<Bool, Never> & Sendable {
        throw .foreignToggle("\(toggle)")
      }
    }
    try await BFFServer.run { server async throws in
      let reported = Lock<[TogglesDataStoreError]>([])
      let session = GetMomentsByUserIDSession(
        apiSession: server.apiSession, togglesDataStore: Unreadable(),
        onUnreadableToggle: { error in reported.withLock { $0.append(error) } })
      let details = try await session.getMoments(userID: "0")
      #expect(details.moments[0].isLiked == nil)
      #expect(reported.withLock { $0 } == [.foreignToggle("isLikeButtonForMomentEnabled")])
    }
  }
}
