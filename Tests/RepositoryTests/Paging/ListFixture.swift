import DataStore
import MulticastTesting
import RepositoryTesting
import TestSupport

@testable import Repository

/// A row of a list.
struct Row: Codable, Equatable, Identifiable, Sendable {
  let id: Int
  var title = ""
  var count = 0
}

enum RowChange: RepositoryMutation, Equatable {
  case add(Int)
  case rename(Int, String)
  case delete(Int)
  /// A change that makes a difference each time that it is applied.
  case increment(Int)

  func apply(to list: inout Paged<Row>) throws(MutationConflict) {
    switch self {
    case .add(let id): list.insertFirst(Row(id: id))
    case .rename(let id, let title): list.update(id) { $0.title = title }
    case .delete(let id): list.remove(id)
    case .increment(let id): list.update(id) { $0.count += 1 }
    }
  }
}

/// A list on a server, and a store, for tests of a repository of lists.
struct ListFixture: Sendable {
  typealias Server = InMemoryServer<String, Paged<Row>, RowChange>
  typealias Repository = SyncedRepository<Source>

  struct Source: PagedSource, MutableSource {
    let name = "rows"
    let fixture: ListFixture

    func fetch(_ key: String, after cursor: String?, limit: Int) async throws(NotesFailure) -> Paged<Row> {
      fixture.requests.value.append(.init(cursor: cursor, limit: limit))
      if let onFetch = fixture.onFetch { return try await onFetch(cursor, limit) }
      return fixture.server.page(of: key, after: cursor, limit: limit)
    }

    func send(_ change: RowChange, to key: String, id: MutationID) async throws(NotesFailure) -> MutationReply<
      Paged<Row>
    > {
      if let onApply = fixture.onApply {
        try await onApply(change, id)
      } else {
        try fixture.server.apply(change, id)
      }
      return .done
    }

    func disposition(of failure: NotesFailure) -> FailureDisposition { failure.disposition }
  }

  struct Request: Equatable {
    let cursor: String?
    let limit: Int
  }

  let server = Server(empty: Paged())
  let store: any KeyValueStore
  let clock = ManualClock()
  let requests = Setting<[Request]>([])
  private let handlers = Setting(Handlers())

  private struct Handlers {
    var fetch: FetchHandler?
    var apply: ApplyHandler?
  }

  typealias FetchHandler = @Sendable (_ cursor: String?, _ limit: Int) async throws(NotesFailure) -> Paged<Row>
  typealias ApplyHandler = @Sendable (RowChange, MutationID) async throws(NotesFailure) -> Void

  /// Returns a page; `nil` for that of ``server``, whose cursors are the ids of the last elements.
  var onFetch: FetchHandler? {
    get { handlers.value.fetch }
    nonmutating set { handlers.value.fetch = newValue }
  }

  /// Has a change applied; `nil` for ``server``.
  var onApply: ApplyHandler? {
    get { handlers.value.apply }
    nonmutating set { handlers.value.apply = newValue }
  }

  /// Creates a server with the rows 1 to `count`.
  init(count: Int = 100, store: any KeyValueStore = InMemoryStore()) {
    self.store = store
    server.edit("a") { $0.elements = (0..<count).map { Row(id: $0 + 1) } }
  }

  func configuration(pageSize: Int) -> RepositoryConfiguration {
    RepositoryConfiguration(pageSize: pageSize, clock: clock, leadership: NoLeadership())
  }

  func makeRepository(pageSize: Int = 20) -> Repository {
    SyncedRepository(
      Source(fixture: self), store: store, configuration: configuration(pageSize: pageSize))
  }

  /// Creates a repository that has loaded a number of pages.
  func makeRepository(pageSize: Int = 20, pages: Int) async throws -> Repository {
    let repository = makeRepository(pageSize: pageSize)
    try await repository.reload("a")
    for _ in 1..<pages { try await repository.loadMore("a") }
    requests.value = []
    return repository
  }

  func stored() async throws -> Paged<Row> {
    try await store.load(StoreKey<Paged<Row>>("rows", id: "a"))?.value ?? Paged()
  }

  func storedIDs() async throws -> [Int] { try await stored().elements.map(\.id) }

  /// Makes the fetch of the page after a cursor wait at a gate before its reply arrives.
  func holdPage(after heldCursor: String, at gate: Gate) {
    onFetch = { [server] (cursor, limit) async throws(NotesFailure) in
      let page = server.page(of: "a", after: cursor, limit: limit)
      if cursor == heldCursor { await gate.pass() }
      return page
    }
  }

  /// Makes fetches wait at a gate before the server makes its reply, or before the reply arrives.
  func holdFetches(at gate: Gate, afterServing: Bool = false) {
    onFetch = { [server] (cursor, limit) async throws(NotesFailure) in
      if !afterServing { await gate.pass() }
      let page = server.page(of: "a", after: cursor, limit: limit)
      if afterServing { await gate.pass() }
      return page
    }
  }
}

extension ListFixture.Server {
  func apply(_ change: RowChange, _ id: MutationID) throws(NotesFailure) {
    do throws(MutationConflict) { _ = try apply(change, to: "a", id: id) } catch { throw .conflict }
  }
}
