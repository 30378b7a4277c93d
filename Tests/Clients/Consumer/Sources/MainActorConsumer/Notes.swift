import Repository

// `nonisolated`, because a store encodes and decodes its values outside the main actor.
nonisolated struct Note: Codable, Equatable, Identifiable {
  let id: String
  let text: String
}

struct NotesKey: RepositoryKey {
  let folder: String

  var storeID: String { folder }

  init(folder: String) { self.folder = folder }

  init?(storeID: String) { self.init(folder: storeID) }
}

enum NoteChange: RepositoryMutation {
  case add(Note)

  func apply(to notes: inout [Note]) {
    switch self {
    case .add(let note): if !notes.contains(note) { notes.append(note) }
    }
  }
}

enum NotesError: Error {
  case offline
}

protocol NotesClient: Sendable {
  func notes(in folder: String) async throws(NotesError) -> [Note]

  func make(_ change: NoteChange, in folder: String, requestID: String) async throws(NotesError) -> [Note]
}

/// A client of a server that is part of this process.
final class LocalNotesClient: NotesClient {
  private var notes = [Note(id: "1", text: "Milk")]

  func notes(in folder: String) -> [Note] { notes }

  func make(_ change: NoteChange, in folder: String, requestID: String) -> [Note] {
    change.apply(to: &notes)
    return notes
  }
}

struct NotesSource: MutableSource {
  let name = "notes"
  let client: any NotesClient

  func fetch(_ key: NotesKey) async throws(NotesError) -> [Note] {
    try await client.notes(in: key.folder)
  }

  func send(
    _ change: NoteChange, to key: NotesKey, id: MutationID
  ) async throws(NotesError) -> MutationReply<[Note]> {
    .value(try await client.make(change, in: key.folder, requestID: id.rawValue))
  }

  func disposition(of failure: NotesError) -> FailureDisposition { .retryLater() }
}
