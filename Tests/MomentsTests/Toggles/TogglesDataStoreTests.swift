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

  private static let likeButton = InternalToggle.isLikeButtonForMomentEnabled
  /// A key that begins like the keys of the toggles, but belongs to none.
  private static let unrelatedKey = StoreKey<Bool>("toggle-unrelated")

  @Test(arguments: InternalToggle.allCases)
  func `A toggle is off until it is turned on, independently of other values`(_ toggle: InternalToggle) async throws {
    let store = InMemoryStore()
    let toggles = TogglesDataStore(store)
    try await store.save(true, for: Self.unrelatedKey)
    #expect(try await !toggles.isToggleOn(toggle))
    try await toggles.update(toggle, isOn: true)
    for candidate in InternalToggle.allCases {
      #expect(try await toggles.isToggleOn(candidate) == (candidate == toggle))
    }
    try await toggles.update(toggle, isOn: false)
    #expect(try await !toggles.isToggleOn(toggle))
    #expect(try await store.load(Self.unrelatedKey)?.value == true)
  }

  @Test func `A toggle of another type is off, and can't be updated or observed`() async throws {
    let toggles = TogglesDataStore(InMemoryStore())
    let foreignToggle = ForeignToggle.isLikeButtonForMomentEnabled
    try await toggles.update(Self.likeButton, isOn: true)
    #expect(try await !toggles.isToggleOn(foreignToggle))
    let refusal = TogglesDataStoreError.foreignToggle("ForeignToggle.isLikeButtonForMomentEnabled")
    await #expect(throws: refusal) { try await toggles.update(foreignToggle, isOn: false) }
    await #expect(throws: refusal) { _ = try await toggles.states(of: foreignToggle) }
    #expect(try await toggles.isToggleOn(Self.likeButton))
  }

  @Test func `An updated toggle keeps its state when the store is reopened`() async throws {
    let folder = TemporaryFolder()
    try await TogglesDataStore(FileStore(folder: folder.url)).update(Self.likeButton, isOn: true)
    let reopened = TogglesDataStore(FileStore(folder: folder.url))
    #expect(try await reopened.isToggleOn(Self.likeButton))
    var seen: [Bool] = []
    for await isOn in try await reopened.states(of: Self.likeButton) {
      seen.append(isOn)
      break
    }
    #expect(seen == [true])
  }

  @Test func `An observer of a toggle receives its state, then each of its changes and no others`() async throws {
    let store = InMemoryStore()
    let toggles = TogglesDataStore(store)
    let states = try await toggles.states(of: Self.likeButton)
    try await toggles.update(Self.likeButton, isOn: true)
    try await store.save(true, for: Self.unrelatedKey)
    try await toggles.update(Self.likeButton, isOn: false)
    try await toggles.update(Self.likeButton, isOn: true)
    var seen: [Bool] = []
    for await isOn in states {
      seen.append(isOn)
      if seen.count == 4 { break }
    }
    #expect(seen == [false, true, false, true])
  }

  @Test func `Updating a toggle that can't be stored throws`() async throws {
    let folder = try TemporaryFolder.created()
    let fileURL = folder.url.appending(path: "store")
    // A file in place of the folder makes every call of the store fail.
    try Data().write(to: fileURL)
    let toggles = TogglesDataStore(FileStore(folder: fileURL))
    do throws(TogglesDataStoreError) {
      try await toggles.update(Self.likeButton, isOn: true)
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
      var isLikedValues = [try await session.getMoments(userID: "0").moments[0].isLiked]
      for isOn in [true, false] {
        try await toggles.update(Self.likeButton, isOn: isOn)
        isLikedValues.append(try await session.getMoments(userID: "0").moments[0].isLiked)
      }
      #expect(isLikedValues == [nil, true, nil])
      #expect(try await server.received().map { $0.variables["withLikes"] } == [false, true, false])
    }
  }

  @Test(.requiresBFF) func `A toggle that can't be read is reported and counts as off`() async throws {
    struct UnreadableToggles: TogglesDataStoreType {
      func isToggleOn(_ toggle: any ToggleType) async throws(TogglesDataStoreError) -> Bool {
        // An arbitrary error.
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
        apiSession: server.apiSession, togglesDataStore: UnreadableToggles(),
        onUnreadableToggle: { error in reported.withLock { $0.append(error) } })
      let details = try await session.getMoments(userID: "0")
      #expect(details.moments[0].isLiked == nil)
      #expect(reported.withLock { $0 } == [.foreignToggle("isLikeButtonForMomentEnabled")])
    }
  }
}
