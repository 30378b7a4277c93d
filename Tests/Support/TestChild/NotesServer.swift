internal import Foundation
internal import MulticastTesting
internal import Repository
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Notes that several processes write, each with numbered edits.
struct NumberedNotes: Codable, Equatable, Sendable {
  /// The numbers of the edits that the value has, by writer, in the order they were applied.
  var edits: [String: [Int]] = [:]
  /// The number of the edit that wrote each note last, by the name of the note.
  var notes: [String: Int] = [:]

  /// The edits of all writers.
  var editNames: Set<String> {
    Set(edits.flatMap { writer, numbers in numbers.map { "\(writer).\($0)" } })
  }
}

/// An edit of notes, which follows from its number.
///
/// Eight edits in a row are about two notes of their own, so that the edits of different writers can be applied in any
/// order.
struct NumberedEdit: RepositoryMutation, Hashable {
  enum Change: Int {
    case addFirst, setFirst
    /// The server refuses it.
    case addForbidden
    /// Of the notes that ``NotesServer/isShared(_:)``, another client removes the first one at the same time.
    case addSecond
    /// Impossible where another client has removed the first note.
    case setFirstAgain
    /// In conflict with a note that only the server knows.
    case addTaken
    case setSecond, removeSecond
  }

  let writer: String
  let number: Int

  var name: String { "\(writer).\(number)" }

  var change: Change { Change(rawValue: number % 8)! }

  var firstNote: String { "\(writer).\(number / 8).first" }

  private var secondNote: String { "\(writer).\(number / 8).second" }

  func apply(to value: inout NumberedNotes) throws(MutationConflict) {
    if value.edits[writer]?.contains(number) ?? false { return }
    switch change {
    case .addFirst: value.notes[firstNote] = number
    case .addSecond: value.notes[secondNote] = number
    case .addForbidden, .addTaken: value.notes["\(writer).\(number).other"] = number
    case .setFirst, .setFirstAgain: try set(firstNote, in: &value)
    case .setSecond: try set(secondNote, in: &value)
    case .removeSecond: value.notes[secondNote] = nil
    }
    value.edits[writer, default: []].append(number)
  }

  private func set(_ note: String, in value: inout NumberedNotes) throws(MutationConflict) {
    guard value.notes[note] != nil else { throw MutationConflict("There is no \(note).") }
    value.notes[note] = number
  }
}

/// A server of notes in a file, which outlives the processes that ask it, and is used by several at the same time.
///
/// Each edit it makes is one line, `ID KEY WRITER NUMBER`, written by one call. So it is made or not made, whenever the
/// process is killed. An id is taken once. Its repetition gets the reply of the first time, which may be old by now.
actor NotesServer {
  enum Failure: Error {
    case offline, brokenConnection, refused, conflict
  }

  /// Which requests fail although the server could answer.
  enum Faults {
    case none
    /// The reply to the first attempt of each edit gets lost.
    case firstReplies
    /// Half of all requests, at random.
    case random(SplitMix64)
  }

  private enum Fault {
    case offline, brokenBefore, brokenAfter
  }

  private struct Made {
    let id: String
    let key: String
    let edit: NumberedEdit
  }

  private let file: CInt
  private var faults: Faults
  /// The ids that had a fault, for ``Faults/firstReplies``.
  private var attempted: Set<MutationID> = []

  init(file url: URL, faults: Faults) {
    file = open(url.path(percentEncoded: false), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard file >= 0 else { TestChild.fail("open: \(errno)") }
    self.faults = faults
  }

  /// Whether another client edits the notes of a key too, so that the server answers with the whole value.
  static func isShared(_ key: String) -> Bool { key == "shared" }

  /// The notes as they are now.
  func notes(of key: String) -> NumberedNotes {
    exclusively { Self.notes(of: key, in: $0) }
  }

  func fetch(_ key: String) throws(Failure) -> NumberedNotes {
    if let fault = drawFault(nil) { throw fault == .offline ? .offline : .brokenConnection }
    return notes(of: key)
  }

  func take(_ edit: NumberedEdit, _ key: String, _ id: MutationID) throws(Failure) -> MutationReply<NumberedNotes> {
    let fault = drawFault(id)
    if fault == .offline { throw .offline }
    if fault == .brokenBefore { throw .brokenConnection }
    let result = exclusively { make(edit, key, id, $0) }
    if fault == .brokenAfter { throw .brokenConnection }
    let notes = try result.get()
    return Self.isShared(key) ? .value(notes) : .done
  }

  private func drawFault(_ id: MutationID?) -> Fault? {
    switch faults {
    case .none: return nil
    case .firstReplies: return id.map { attempted.insert($0).inserted } ?? false ? .brokenAfter : nil
    case .random(var random):
      let number = random.next() % 6
      faults = .random(random)
      return [.offline, .brokenBefore, .brokenAfter, nil, nil, nil][Int(number)]
    }
  }

  /// Makes an edit, unless its id was taken before.
  private func make(
    _ edit: NumberedEdit, _ key: String, _ id: MutationID, _ made: [Made]
  ) -> Result<NumberedNotes, Failure> {
    if let index = made.firstIndex(where: { $0.id == id.rawValue }) {
      guard made[index].edit == edit, made[index].key == key else { TestChild.fail("\(id) names two edits") }
      return .success(Self.notes(of: key, in: made[...index]))
    }
    switch edit.change {
    case .addForbidden: return .failure(.refused)
    case .addTaken: return .failure(.conflict)
    default: break
    }
    var notes = Self.notes(of: key, in: made)
    guard Self.apply(edit, key, to: &notes) else { return .failure(.conflict) }
    let line = Data("\(id) \(key) \(edit.writer) \(edit.number)\n".utf8)
    guard line.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) == line.count else {
      TestChild.fail("write: \(errno)")
    }
    return .success(notes)
  }

  private static func notes(of key: String, in made: some Sequence<Made>) -> NumberedNotes {
    var notes = NumberedNotes()
    for made in made where made.key == key { _ = apply(made.edit, key, to: &notes) }
    return notes
  }

  /// - Returns: Whether the edit is possible.
  private static func apply(_ edit: NumberedEdit, _ key: String, to notes: inout NumberedNotes) -> Bool {
    do throws(MutationConflict) {
      try edit.apply(to: &notes)
    } catch {
      return false
    }
    if edit.change == .addSecond, isShared(key) { notes.notes[edit.firstNote] = nil }
    return true
  }

  /// Does work on all edits that were made while no other process makes one.
  private func exclusively<R>(_ body: ([Made]) -> R) -> R {
    while flock(file, LOCK_EX) != 0 {
      if errno != EINTR { TestChild.fail("flock: \(errno)") }
    }
    defer { flock(file, LOCK_UN) }
    let length = Int(lseek(file, 0, SEEK_END))
    var bytes = [UInt8](repeating: 0, count: length)
    guard pread(file, &bytes, length, 0) == length else { TestChild.fail("pread: \(errno)") }
    return body(
      String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
        let words = line.split(separator: " ").map(String.init)
        guard words.count == 4, let number = Int(words[3]) else { TestChild.fail("half a line: \(line)") }
        return Made(id: words[0], key: words[1], edit: NumberedEdit(writer: words[2], number: number))
      })
  }
}
