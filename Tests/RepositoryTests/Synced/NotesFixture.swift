import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting

@testable import Repository

/// A store, a server and a clock for a test of a repository of notes.
struct NotesFixture: Sendable {
  let memory: InMemoryStore
  /// The default store of the repositories: it intercepts calls and forwards them to ``memory``.
  let store: InterceptedStore
  let server = NotesServer(empty: Notes())
  let clock = ManualClock()
  /// How much later it is than the system's clock says; see ``NotesSuite/configuration``.
  private let lateness = Setting(Duration.zero)

  init(storage: InMemoryStorage = InMemoryStorage(), now: @escaping @Sendable () -> Date = { Date() }) {
    memory = InMemoryStore(storage: storage, now: now)
    store = InterceptedStore(memory)
  }

  var now: @Sendable () -> Date {
    { [lateness] in Date() + TimeInterval(lateness.value.components.seconds) }
  }

  /// Lets an hour pass, in which the stored delays after failed attempts end.
  func passHour() {
    lateness.value += .seconds(3600)
  }
}

/// A suite whose tests each have a ``NotesFixture``.
protocol NotesSuite: Sendable {
  var fixture: NotesFixture { get }
}

extension NotesSuite {
  var memory: InMemoryStore { fixture.memory }
  var store: InterceptedStore { fixture.store }
  var server: NotesServer { fixture.server }
  var clock: ManualClock { fixture.clock }
  /// A configuration with the clock and the time of the fixture.
  ///
  /// Each `makeRepository` lets an hour pass, because nothing else ends the stored delays of earlier repositories.
  var configuration: RepositoryConfiguration {
    RepositoryConfiguration(clock: clock, now: fixture.now, leadership: NoLeadership())
  }

  /// Creates a repository that calls `onFetch` before it fetches, and `onSend` before it sends.
  func makeRepository(
    configuration: RepositoryConfiguration? = nil, store: (any KeyValueStore)? = nil,
    onSend: @escaping @Sendable (NotesMutation) async throws(NotesFailure) -> Void = { _ in },
    onFetch: @escaping @Sendable (String) async throws(NotesFailure) -> Void = { _ in }
  ) -> NotesRepository {
    fixture.passHour()
    return NotesRepository(
      NotesSource(
        fetch: { [server] (key) async throws(NotesFailure) in
          try await onFetch(key)
          return server.value(of: key)
        },
        send: { [server] (mutation, key, id) async throws(NotesFailure) in
          try await onSend(mutation)
          return .value(try server.take(mutation, key, id))
        }), store: store ?? self.store, configuration: configuration ?? self.configuration)
  }

  /// Creates a repository whose connection loses the replies to mutations that the server applies while `isBroken` is
  /// `true`.
  func makeRepository(
    losingReplies isBroken: Setting<Bool>, configuration: RepositoryConfiguration? = nil
  ) -> NotesRepository {
    fixture.passHour()
    return NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) },
        send: { [server] (mutation, key, id) throws(NotesFailure) in
          let reply = try server.take(mutation, key, id)
          if isBroken.value { throw .brokenConnection }
          return .value(reply)
        }), store: store, configuration: configuration ?? self.configuration)
  }

  /// Stores a value both locally and on the server.
  func put(_ notes: Notes, _ key: String = "a") async throws {
    try await memory.save(notes, for: .notes(key))
    server.edit(key) { $0 = notes }
  }

  /// Waits until the stored record of a mutation isn't marked; see ``MutationRecord/isMarked``.
  func waitUntilUnmarked(_ id: MutationID) async throws {
    let record = MutationKeys(repository: "notes").record(id)
    let changes = try await memory.changes(of: record)
    for await change in changes where change.stored?.value.isMarked == false { break }
  }
}
