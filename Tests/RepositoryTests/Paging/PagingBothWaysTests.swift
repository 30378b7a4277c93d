import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// Pages that are fetched in both directions, and the limit on their number.
@Suite(.timeLimit(.minutes(15))) struct PagingBothWaysTests {
  struct Item: Codable, Equatable, Identifiable, Sendable {
    let id: Int
    var text = ""
  }

  enum Change: RepositoryMutation {
    case add(Int)

    func apply(to page: inout Paged<Item>) {
      switch self {
      case .add(let id): page.upsertFirst(Item(id: id))
      }
    }
  }

  typealias Server = InMemoryServer<String, Paged<Item>, Change>

  struct Source: BidirectionalPagedSource, MutableSource {
    let server: Server
    /// The requests since the last `takeRequests()`: `after 9`, or `3 before 7` for the three elements before 7.
    let requests: Setting<[String]>
    let failure: Setting<NotesFailure?>
    /// The only request that fails, if any; otherwise each one does.
    let failingRequest: Setting<String?>
    /// The number of elements beyond the limit in each page.
    let excess: Setting<Int>
    /// The gate at which requests for previous pages wait, if any.
    let previousPageGate: Setting<Gate?>
    let name = "items"

    func fetch(_ key: String, after cursor: String?, limit: Int) async throws(NotesFailure) -> Paged<Item> {
      try beginRequest("after \(cursor ?? "nothing")")
      return server.bidirectionalPage(of: key, after: cursor, limit: limit + excess.value)
    }

    func fetch(_ key: String, before cursor: String, limit: Int) async throws(NotesFailure) -> Paged<Item> {
      try beginRequest("\(limit) before \(cursor)")
      await previousPageGate.value?.pass()
      return server.bidirectionalPage(of: key, before: cursor, limit: limit + excess.value)
    }

    func cursor(of item: Item) -> String { "\(item.id)" }

    func send(_ change: Change, to key: String, id: MutationID) async throws(NotesFailure) -> MutationReply<Paged<Item>>
    {
      do throws(MutationConflict) { _ = try server.apply(change, to: key, id: id) } catch { throw .conflict }
      return .done
    }

    func disposition(of failure: NotesFailure) -> FailureDisposition { failure.disposition }

    private func beginRequest(_ request: String) throws(NotesFailure) {
      requests.value.append(request)
      if let failure = failure.value, request == failingRequest.value ?? request { throw failure }
    }
  }

  private let server = Server(empty: Paged())
  private let store = InMemoryStore()
  private let requests = Setting<[String]>([])
  private let failure = Setting<NotesFailure?>(nil)
  private let failingRequest = Setting<String?>(nil)
  private let excess = Setting(0)
  private let previousPageGate = Setting<Gate?>(nil)

  init() {
    server.edit("a") { $0.elements = (1...12).map { Item(id: $0) } }
  }

  private func makeRepository(maximumPages: Int? = 2) -> SyncedRepository<Source> {
    SyncedRepository(
      Source(
        server: server, requests: requests, failure: failure, failingRequest: failingRequest, excess: excess,
        previousPageGate: previousPageGate), store: store,
      configuration: RepositoryConfiguration(pageSize: 3, maximumPages: maximumPages))
  }

  private func storedList() async throws -> Paged<Item>? {
    try await store.load(StoreKey<Paged<Item>>("items", id: "a"))?.value
  }

  private func storedIDs() async throws -> [Int] { try await storedList()?.elements.map(\.id) ?? [] }

  private func takeRequests() -> [String] {
    defer { requests.value = [] }
    return requests.value
  }

  /// Creates a repository that has the elements 4 to 9.
  private func makeScrolledRepository() async throws -> SyncedRepository<Source> {
    let repository = makeRepository()
    try await repository.reload("a")
    for _ in 1...2 { try await repository.loadMore("a") }
    try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
    _ = takeRequests()
    return repository
  }

  @Test func `Elements that were scrolled past are dropped, and fetched again on the way back`() async throws {
    let repository = try await makeScrolledRepository()
    var states = repository.states(of: "a").subscribe().makeAsyncIterator()
    let state = try #require(await states.next())
    #expect((state.hasPrevious, state.hasMore) == (true, true))

    try await repository.loadMore("a")
    try await #expect(storedIDs() == [7, 8, 9, 10, 11, 12])
    try await #expect(storedList()?.nextCursor == nil)
    try await repository.loadPrevious("a")
    try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
    try await repository.loadMore("a")
    try await #expect(storedIDs() == [7, 8, 9, 10, 11, 12])
    for _ in 1...2 { try await repository.loadPrevious("a") }
    try await #expect(storedIDs() == [1, 2, 3, 4, 5, 6])
    try await #expect(storedList()?.previousCursor == nil)
    #expect(
      takeRequests() == ["after 9", "3 before 7", "after 9", "3 before 7", "3 before 4"])
    // There is no previous page.
    try await repository.loadPrevious("a")
    #expect(takeRequests() == [])
  }

  @Test func `Without a limit no elements are dropped, so there is no previous page to fetch`() async throws {
    let repository = makeRepository(maximumPages: nil)
    try await repository.reload("a")
    for _ in 1...3 { try await repository.loadMore("a") }
    try await #expect(storedIDs() == Array(1...12))
    try await repository.loadPrevious("a")
    #expect(takeRequests() == ["after nothing", "after 3", "after 6", "after 9"])
  }

  @Test func `Only a failed page is fetched again, and the stored pages stay`() async throws {
    let repository = try await makeScrolledRepository()
    failure.value = .offline
    await #expect(throws: NotesError.server(.offline)) { try await repository.loadPrevious("a") }
    try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
    var states = repository.states(of: "a").subscribe().makeAsyncIterator()
    #expect(await states.next()?.failure == .server(.offline))
    failure.value = nil
    try await repository.loadPrevious("a")
    try await #expect(storedIDs() == [1, 2, 3, 4, 5, 6])
    #expect(takeRequests() == ["3 before 4", "3 before 4"])
  }

  @Test func `A list whose first elements were dropped is refreshed in place`() async throws {
    let repository = try await makeScrolledRepository()
    server.edit("a") { list in
      list.update(5) { $0.text = "changed" }
      list.elements.insert(Item(id: 13), at: 0)
      list.remove(6)
    }
    try await repository.reload("a")
    #expect(takeRequests() == ["3 before 7"])
    // The three elements before 7 now begin with 3, because 6 was removed.
    try await #expect(storedIDs() == [3, 4, 5, 7, 8, 9])
    try await #expect(storedList()?.elements[2].text == "changed")
    // Unlike `reload`, `loadNewest` returns to the newest page.
    try await repository.loadNewest("a")
    try await #expect(storedIDs() == [13, 1, 2])
    #expect(takeRequests() == ["after nothing"])
  }

  @Test func `A list whose first stored page the server refuses restarts with the newest page`() async throws {
    let repository = try await makeScrolledRepository()
    failure.value = .refused
    await #expect(throws: NotesError.server(.refused)) { try await repository.reload("a") }
    failure.value = nil
    try await repository.reload("a")
    try await #expect(storedIDs() == [1, 2, 3])
    #expect(takeRequests() == ["3 before 7", "after nothing"])
  }

  @Test func `A list whose next page the server refuses restarts with the newest page`() async throws {
    let repository = try await makeScrolledRepository()
    failure.value = .refused
    await #expect(throws: NotesError.server(.refused)) { try await repository.loadMore("a") }
    failure.value = nil
    try await repository.reload("a")
    try await #expect(storedIDs() == [1, 2, 3])
    try await repository.loadMore("a")
    try await #expect(storedIDs() == [1, 2, 3, 4, 5, 6])
    #expect(takeRequests() == ["after 9", "after nothing", "after 3"])
  }

  @Test func `The refusal of a later page of a walk over the loaded pages is thrown, and the stored pages stay`()
    async throws
  {
    let repository = try await makeScrolledRepository()
    (failure.value, failingRequest.value) = (.refused, "after 6")
    await #expect(throws: NotesError.server(.refused)) { try await repository.reloadLoadedPages("a") }
    #expect(takeRequests() == ["3 before 7", "after 6"])
    try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
  }

  @Test func `Pages that are longer than the limit don't move the list away from the user`() async throws {
    let repository = try await makeScrolledRepository()
    excess.value = 5
    for _ in 1...2 {
      try await repository.reload("a")
      try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
      try await repository.reloadLoadedPages("a")
      try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
    }
    try await #expect(storedList()?.previousCursor == "4")
    server.edit("a") { list in list.elements += (13...30).map { Item(id: $0) } }
    for first in [7, 10, 13] {
      try await repository.loadMore("a")
      try await #expect(storedIDs() == Array(first..<first + 6))
      try await #expect(storedList()?.nextCursor == "\(first + 5)")
    }
    for first in [10, 7, 4, 1] {
      try await repository.loadPrevious("a")
      try await #expect(storedIDs() == Array(first..<first + 6))
    }
    try await #expect(storedList()?.previousCursor == nil)
  }

  @Test func `A list without a limit keeps all elements of pages that are longer than the limit`() async throws {
    let repository = makeRepository(maximumPages: nil)
    excess.value = 2
    try await repository.reload("a")
    try await repository.loadMore("a")
    try await #expect(storedIDs() == Array(1...10))
    #expect(takeRequests() == ["after nothing", "after 5"])
  }

  @Test func `A first stored page that arrives after the refusal of the next page doesn't undo the refusal`()
    async throws
  {
    let repository = try await makeScrolledRepository()
    let firstPageGate = Gate()
    previousPageGate.value = firstPageGate
    let reload = Task { try await repository.reload("a") }
    await firstPageGate.arrivals()
    failure.value = .refused
    await #expect(throws: NotesError.server(.refused)) { try await repository.loadMore("a") }
    failure.value = nil
    firstPageGate.open()
    try await reload.value
    try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
    try await repository.reload("a")
    try await #expect(storedIDs() == [1, 2, 3])
    #expect(takeRequests() == ["3 before 7", "after 9", "after nothing"])
  }

  @Test func `Shortening a list doesn't make it begin with an element that this device inserted`() async throws {
    server.edit("a") { $0.elements.removeLast(8) }
    let repository = makeRepository()
    try await repository.reload("a")
    for id in 20...24 { try await repository.perform(.add(id), on: "a") }
    try await #expect(storedIDs() == [24, 23, 22, 21, 20, 1, 2, 3])
    try await repository.loadMore("a")
    // Six elements may stay: 21, 20, and 1 to 4. But 21 and 20 are dropped too, because no fetched page contained them.
    try await #expect(storedIDs() == [1, 2, 3, 4])
    _ = takeRequests()
    try await repository.loadPrevious("a")
    #expect(takeRequests() == ["3 before 1"])
  }

  @Test func `Elements that this device inserted are dropped, and fetched again on the way back`() async throws {
    let repository = makeRepository()
    try await repository.reload("a")
    try await repository.loadMore("a")
    #expect(try await repository.perform(.add(20), on: "a") == .confirmed)
    #expect(try await repository.perform(.add(21), on: "a") == .confirmed)
    try await #expect(storedIDs() == [21, 20, 1, 2, 3, 4, 5, 6])
    _ = takeRequests()
    try await repository.loadMore("a")
    try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
    try await repository.loadPrevious("a")
    try await #expect(storedIDs() == [1, 2, 3, 4, 5, 6])
    try await repository.loadPrevious("a")
    // This page has only two elements, so four others stay: two pages of three mean at most six elements.
    try await #expect(storedIDs() == [21, 20, 1, 2, 3, 4])
    #expect(takeRequests() == ["after 6", "3 before 4", "3 before 1"])
  }

  @Test func `The stored pages and their cursors survive a relaunch`() async throws {
    do { _ = try await makeScrolledRepository() }
    let repository = makeRepository()
    try await repository.loadPrevious("a")
    try await #expect(storedIDs() == [1, 2, 3, 4, 5, 6])
    try await repository.loadMore("a")
    try await #expect(storedIDs() == [4, 5, 6, 7, 8, 9])
    #expect(takeRequests() == ["3 before 4", "after 6"])
  }

  /// Scrolls at random while other users add elements at both ends, and compares the stored elements with the server's
  /// list.
  @Test func `The stored elements are always a contiguous part of the server's list`() async throws {
    var random = SplitMix64(seed: 7)
    let repository = makeRepository()
    var lastID = 12
    for _ in 1...400 {
      switch Int.random(in: 0..<8, using: &random) {
      case 0, 1: try await repository.loadMore("a")
      case 2, 3: try await repository.loadPrevious("a")
      case 4: try await repository.loadNewest("a")
      case 5: try await repository.reload("a")
      case 6:
        lastID += 1
        server.edit("a") { [lastID] in $0.elements.insert(Item(id: lastID), at: 0) }
      default:
        // Adds an element at the end of the list. The stored pages may not reach that far yet.
        lastID += 1
        server.edit("a") { [lastID] in $0.elements.append(Item(id: lastID)) }
      }
      guard let stored = try await storedList() else { continue }
      let serverIDs = server.value(of: "a").elements.map(\.id)
      let ids = stored.elements.map(\.id)
      // At most two pages of three elements.
      #expect(ids.count <= 6)
      let start = try #require(serverIDs.firstIndex(of: ids[0]))
      #expect(ids == Array(serverIDs[start...].prefix(ids.count)))
      #expect(stored.previousCursor == nil || stored.previousCursor == "\(ids[0])")
      #expect(stored.nextCursor == nil || stored.nextCursor == "\(ids[ids.count - 1])")
    }
  }

  // MARK: - Conformance

  /// A source over a simulated network.
  struct NetworkedSource: BidirectionalPagedSource, MutableSource {
    let server: Server
    let network: SimulatedNetwork
    /// The number of missing elements between a previous page and the element that follows it.
    let gap: Int
    let name = "items"

    func fetch(_ key: String, after cursor: String?, limit: Int) async throws(NotesFailure) -> Paged<Item> {
      try await exchange { [server] in server.bidirectionalPage(of: key, after: cursor, limit: limit) }
    }

    func fetch(_ key: String, before cursor: String, limit: Int) async throws(NotesFailure) -> Paged<Item> {
      var page = try await exchange { [server, gap] in
        server.bidirectionalPage(of: key, before: cursor, limit: limit + gap)
      }
      page.elements.removeLast(min(gap, max(0, page.elements.count - 1)))
      return page
    }

    func cursor(of item: Item) -> String { "\(item.id)" }

    func send(_ change: Change, to key: String, id: MutationID) async throws(NotesFailure) -> MutationReply<Paged<Item>>
    {
      let result = try await exchange { [server] in
        Result { () throws(MutationConflict) in
          try server.apply(change, to: key, id: id)
        }
      }
      if case .failure = result { throw .conflict }
      return .done
    }

    func disposition(of failure: NotesFailure) -> FailureDisposition { failure.disposition }

    private func exchange<Reply: Sendable>(_ reply: @escaping @Sendable () -> Reply) async throws(NotesFailure) -> Reply
    {
      do throws(SimulatedNetwork.Failure) {
        return try await network.exchange("request", reply)
      } catch {
        throw error == .unreachable ? .offline : .brokenConnection
      }
    }
  }

  private static func makeHarness(gap: Int) -> RepositoryHarness<NetworkedSource> {
    RepositoryHarness(
      key: "a", initial: Paged((1...6).map { Item(id: $0) }), mutations: [.add(7), .add(8), .add(9)],
      // Longer than any check takes, even while many other tests run.
      timeLimit: .seconds(600),
      makeSource: { NetworkedSource(server: $0, network: $1, gap: gap) },
      makePlace: {
        let storage = InMemoryStorage()
        return { InMemoryStore(storage: storage) }
      })
  }

  @Test(arguments: RepositoryConformance<NetworkedSource>.pagingChecks)
  func `A correct source passes, and a source whose pages leave a gap fails`(
    check: RepositoryConformance<NetworkedSource>.Check
  ) async throws {
    try await check.run(on: Self.makeHarness(gap: 0))
    let failure = try await #require(throws: RepositoryConformance<NetworkedSource>.Failure.self) {
      try await check.run(on: Self.makeHarness(gap: 1))
    }
    #expect(failure.law == "Pages")
  }
}
