import DataStore
import Repository
import RepositoryTesting

/// A list of texts, which is the value in most tests of repositories.
struct Notes: Codable, Equatable, Sendable {
  var texts: [String] = []

  init(_ texts: String...) { self.texts = texts }
}

enum NotesMutation: RepositoryMutation, Equatable {
  /// Adds a text, unless it exists.
  case add(String)
  /// Removes a text, if it exists.
  case remove(String)
  /// Replaces a text with a new one, unless the new one exists; impossible if neither exists.
  case replace(String, with: String)

  func apply(to value: inout Notes) throws(MutationConflict) {
    switch self {
    case .add(let text): if !value.texts.contains(text) { value.texts.append(text) }
    case .remove(let text): value.texts.removeAll { $0 == text }
    case .replace(let old, let new):
      if value.texts.contains(new) { return }
      guard let index = value.texts.firstIndex(of: old) else { throw MutationConflict("There is no \(old).") }
      value.texts[index] = new
    }
  }
}

enum NotesFailure: Error, Hashable, Sendable {
  case offline, brokenConnection, refused, conflict, signedOut
  case busy(retryAfter: Duration)
  /// The server may have made the change, and asks for a delay.
  case overloaded(retryAfter: Duration)

  var disposition: FailureDisposition {
    switch self {
    case .offline: .retryLater()
    case .busy(let delay): .retryLater(after: delay)
    case .overloaded(let delay): .unknownOutcome(after: delay)
    case .brokenConnection: .unknownOutcome
    case .refused: .refused
    case .conflict: .conflict
    case .signedOut: .needsSignIn
    }
  }
}

typealias NotesServer = InMemoryServer<String, Notes, NotesMutation>
typealias NotesSource = ScriptedSource<String, Notes, NotesMutation, NotesFailure>
typealias NotesRepository = SyncedRepository<NotesSource>
typealias NotesError = RepositoryError<NotesFailure>

extension ScriptedSource where Key == String, Value == Notes, Mutation == NotesMutation, Failure == NotesFailure {
  /// Creates a source that uses an in-memory server and confirms each mutation with the changed value.
  ///
  /// - Parameters:
  ///   - server: The server.
  ///   - isOffline: While it is `true`, sending a mutation throws ``NotesFailure/offline``. Fetches still work.
  init(_ server: NotesServer, isOffline: Setting<Bool> = Setting(false)) {
    self.init(
      fetch: { server.value(of: $0) },
      send: { (mutation, key, id) throws(NotesFailure) in
        if isOffline.value { throw .offline }
        return .value(try server.take(mutation, key, id))
      })
  }

  init(
    fetch: @escaping @Sendable (String) async throws(NotesFailure) -> Notes,
    send: @escaping @Sendable (NotesMutation, String, MutationID) async throws(NotesFailure) -> MutationReply<Notes>
  ) {
    self.init("notes", fetch: fetch, send: send, disposition: { $0.disposition })
  }
}

extension InMemoryServer where Value == Notes {
  /// Applies a mutation; throws ``NotesFailure/conflict`` if it isn't possible.
  func take(_ mutation: Mutation, _ key: Key, _ id: MutationID) throws(NotesFailure) -> Notes {
    do throws(MutationConflict) {
      return try apply(mutation, to: key, id: id)
    } catch {
      throw .conflict
    }
  }
}

extension SyncedRepository where Source: MutableSource {
  /// Waits until a mutation is in conflict, and returns its id.
  @discardableResult
  func waitForConflict() async -> MutationID? {
    for await list in mutations.changes {
      if let id = list.first(where: { if case .conflicted = $0.standing { true } else { false } })?.id { return id }
    }
    return nil
  }
}

extension StoreKey where Value == Notes {
  static func notes(_ id: String) -> Self { Self("notes", id: id) }
}
