import DataStore
import MulticastTesting
import RepositoryTesting

@testable import Repository

/// A store, a server and a clock for a test of repositories whose values belong to users.
struct UsersFixture: Sendable {
  typealias Source = ScriptedSource<UserKey, Notes, NotesMutation, NotesFailure>
  typealias Repository = SyncedRepository<Source>

  let storage = InMemoryStorage()
  let memory: InMemoryStore
  /// The default store of the repositories: it intercepts calls and forwards them to ``memory``.
  ///
  /// It doesn't support locks.
  let store: InterceptedStore
  let server = InMemoryServer<UserKey, Notes, NotesMutation>(empty: Notes())
  let clock = ManualClock()
  let isOffline = Setting(false)

  init() {
    memory = InMemoryStore(storage: storage)
    store = InterceptedStore(memory)
  }
}

/// A suite whose tests each have a ``UsersFixture``.
protocol UsersSuite: Sendable {
  var fixture: UsersFixture { get }
}

extension UsersSuite {
  typealias Repository = UsersFixture.Repository

  var memory: InMemoryStore { fixture.memory }
  var store: InterceptedStore { fixture.store }
  /// Creates another store on the same storage, to save records of another version of the program.
  ///
  /// One store object can use a collection with only one type of record.
  func makeOtherStore() -> InMemoryStore { InMemoryStore(storage: fixture.storage) }
  var server: InMemoryServer<UserKey, Notes, NotesMutation> { fixture.server }
  var clock: ManualClock { fixture.clock }
  var isOffline: Setting<Bool> { fixture.isOffline }
  var jake: UserKey { UserKey("jake", "a") }
  var mary: UserKey { UserKey("mary", "a") }

  /// Creates a repository that calls `onFetch` before it fetches, and `onSend` before it sends.
  ///
  /// While ``isOffline`` is `true`, sending fails without a call of `onSend`.
  func makeRepository(
    store: (any KeyValueStore)? = nil, retryPolicy: RetryPolicy = RetryPolicy(),
    onSend: @escaping @Sendable (NotesMutation) async throws(NotesFailure) -> Void = { _ in },
    onFetch: @escaping @Sendable (UserKey) async throws(NotesFailure) -> Void = { _ in }
  ) -> Repository {
    Repository(
      UsersFixture.Source(
        "notes",
        fetch: { [server] (key) async throws(NotesFailure) in
          try await onFetch(key)
          return server.value(of: key)
        },
        send: { [server, isOffline] (mutation, key, id) async throws(NotesFailure) in
          if isOffline.value { throw .offline }
          try await onSend(mutation)
          return .value(try server.take(mutation, key, id))
        }, disposition: { $0.disposition }), store: store ?? self.store,
      configuration: RepositoryConfiguration(retryPolicy: retryPolicy, clock: clock))
  }

  /// Returns the stored notes of a key.
  func stored(_ key: UserKey) async throws -> Notes? {
    try await memory.load(StoreKey<Notes>("notes", id: key.storeID))?.value
  }

  /// The ids of the stored mutations.
  var storedMutationIDs: [MutationID] {
    get async throws {
      let entries = try await memory.observe(
        collection: "notes.mutations", as: MutationRecord.self
      ).stored
      return entries.compactMap(\.key.id).map(MutationID.init(rawValue:))
    }
  }
}

extension Result {
  /// Creates the result of an operation.
  init(isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Success) async {
    do throws(Failure) { self = .success(try await body()) } catch { self = .failure(error) }
  }

  var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
