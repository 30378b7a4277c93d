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

/// Notes that several processes change with numbered edits.
struct NumberedNotes: Codable, Equatable, Sendable {
  /// The numbers of the applied edits, by writer, in the order of their application.
  var edits: [String: [Int]] = [:]
  /// The number of the edit that last wrote each note, by the name of the note.
  var notes: [String: Int] = [:]

  /// The names of the applied edits of all writers.
  var editNames: Set<String> {
    Set(edits.flatMap { writer, numbers in numbers.map { "\(writer).\($0)" } })
  }
}

/// An edit of notes, determined by its writer and its number.
///
/// Each group of eight consecutive edits of a writer has notes of its own, and the position in the group determines the
/// change. Two writers never edit the same note, so their edits can be applied in any order.
struct NumberedEdit: RepositoryMutation, Hashable {
  /// The changes of the eight edits of a group, in order.
  ///
  /// `First` and `Second` in a name stand for two notes of the group.
  enum Change: Int {
    case addFirst, setFirst
    /// An edit that the server refuses.
    case addForbidden
    /// An edit after which another client removes the first note, if the notes are shared; see
    /// ``NotesServer/isShared(_:)``.
    case addSecond
    /// An edit that conflicts if another client has removed the first note.
    case setFirstAgain
    /// An edit that conflicts with a note that only the server knows.
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

/// A simulated server of notes, whose file outlives the processes that use it.
///
/// Several processes can use the file at the same time. Each applied edit is one line of the file, written with one
/// call of `write`: `ID KEY WRITER NUMBER`. An edit is therefore applied completely or not at all, no matter when the
/// process is killed. A request that repeats the id of an applied edit gets the original reply, which may be out of
/// date.
actor NotesServer {
  enum Failure: Error {
    case offline, brokenConnection, refused, conflict
  }

  /// The requests that fail although the server could answer them.
  enum Faults {
    case none
    /// The reply to the first attempt of each edit is lost.
    case lostFirstReplies
    /// Half of all requests fail, at random.
    case random(SplitMix64)
  }

  /// The fault of a single request.
  private enum Fault {
    case offline
    /// The connection breaks before the server receives the request.
    case requestLost
    /// The connection breaks after the server has processed the request.
    case replyLost
  }

  private struct AppliedEdit {
    let id: String
    let key: String
    let edit: NumberedEdit
  }

  private let file: CInt
  private var faults: Faults
  /// The ids whose first reply was lost, for ``Faults/lostFirstReplies``.
  private var idsWithLostReply: Set<MutationID> = []

  init(file url: URL, faults: Faults) {
    file = open(url.path(percentEncoded: false), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard file >= 0 else { TestChild.fail("open: \(errno)") }
    self.faults = faults
  }

  /// Whether another client also edits the notes of a key.
  ///
  /// For such notes, the server replies with the whole value.
  static func isShared(_ key: String) -> Bool { key == "shared" }

  /// Returns the current notes.
  func notes(of key: String) -> NumberedNotes {
    exclusively { Self.notes(of: key, in: $0) }
  }

  func fetch(_ key: String) throws(Failure) -> NumberedNotes {
    if let fault = drawFault(ofEdit: nil) { throw fault == .offline ? .offline : .brokenConnection }
    return notes(of: key)
  }

  func take(_ edit: NumberedEdit, _ key: String, _ id: MutationID) throws(Failure) -> MutationReply<NumberedNotes> {
    let fault = drawFault(ofEdit: id)
    if fault == .offline { throw .offline }
    if fault == .requestLost { throw .brokenConnection }
    let result = exclusively { applyOnce(edit, key, id, $0) }
    if fault == .replyLost { throw .brokenConnection }
    let notes = try result.get()
    return Self.isShared(key) ? .value(notes) : .done
  }

  /// Returns the fault of the next request, or `nil` if the request is answered.
  ///
  /// - Parameter id: The id of the edit that the request sends; `nil` for a fetch.
  private func drawFault(ofEdit id: MutationID?) -> Fault? {
    switch faults {
    case .none: return nil
    case .lostFirstReplies: return (id.map { idsWithLostReply.insert($0).inserted } ?? false) ? .replyLost : nil
    case .random(var generator):
      let number = generator.next() % 6
      faults = .random(generator)
      return [.offline, .requestLost, .replyLost, nil, nil, nil][Int(number)]
    }
  }

  /// Applies an edit, unless its id was accepted before.
  private func applyOnce(
    _ edit: NumberedEdit, _ key: String, _ id: MutationID, _ applied: [AppliedEdit]
  ) -> Result<NumberedNotes, Failure> {
    if let index = applied.firstIndex(where: { $0.id == id.rawValue }) {
      guard applied[index].edit == edit, applied[index].key == key else { TestChild.fail("\(id) names two edits") }
      return .success(Self.notes(of: key, in: applied[...index]))
    }
    switch edit.change {
    case .addForbidden: return .failure(.refused)
    case .addTaken: return .failure(.conflict)
    default: break
    }
    var notes = Self.notes(of: key, in: applied)
    guard Self.apply(edit, key, to: &notes) else { return .failure(.conflict) }
    let line = Data("\(id) \(key) \(edit.writer) \(edit.number)\n".utf8)
    guard line.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) == line.count else {
      TestChild.fail("write: \(errno)")
    }
    return .success(notes)
  }

  private static func notes(of key: String, in applied: some Sequence<AppliedEdit>) -> NumberedNotes {
    var notes = NumberedNotes()
    for entry in applied where entry.key == key { _ = apply(entry.edit, key, to: &notes) }
    return notes
  }

  /// Applies an edit, and then the removal that another client makes after it, if any.
  ///
  /// - Returns: Whether the edit could be applied without a conflict.
  private static func apply(_ edit: NumberedEdit, _ key: String, to notes: inout NumberedNotes) -> Bool {
    do throws(MutationConflict) {
      try edit.apply(to: &notes)
    } catch {
      return false
    }
    if edit.change == .addSecond, isShared(key) { notes.notes[edit.firstNote] = nil }
    return true
  }

  /// Calls `body` with all applied edits, while no other process can apply one.
  private func exclusively<R>(_ body: ([AppliedEdit]) -> R) -> R {
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
        guard words.count == 4, let number = Int(words[3]) else { TestChild.fail("incomplete line: \(line)") }
        return AppliedEdit(id: words[0], key: words[1], edit: NumberedEdit(writer: words[2], number: number))
      })
  }
}
