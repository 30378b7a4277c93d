import Foundation
import TestRounds
import TestSupport
import Testing

/// Tests that an acknowledged edit is applied once, in order, and never disappears, no matter when a process is killed.
///
/// An edit is acknowledged once its process has printed that the edit is durable, or that its call has returned. Edits
/// that the server refuses or that conflict are never applied.
///
/// The child processes edit the notes of two keys: `shared`, which another client also edits, and `own`. The number of
/// an edit determines its effect; see `NumberedEdit`.
@Suite(.timeLimit(.minutes(15))) struct SyncedRepositoryKillTests {
  /// The server's answer to the edits of a process that is killed at a file system call.
  enum Answer: CaseIterable {
    case confirmed, replyLost, refused, conflicted

    /// The position in its group of an edit that gets this answer.
    fileprivate var editPosition: Int {
      switch self {
      case .confirmed, .replyLost: Position.addFirst
      case .refused: Position.addForbidden
      case .conflicted: Position.addTaken
      }
    }
  }

  /// The number of rounds of the first test, each of which kills one process at a random instant.
  ///
  /// A higher number also makes the second test kill more processes.
  private static let roundCount = Rounds.count(8, full: 100)

  /// The maximum number of launches between two calls of ``EditHistory/deliverAndCheck(_:)``.
  ///
  /// It must be less than five: a mutation is refused once five processes in a row have ended while sending it.
  private static let maximumLaunches = 4

  /// The number of histories that each test makes at the same time.
  private static let workerCount = 4

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Every acknowledged edit of a killed process is applied once, in order, and stays visible`(
    store: SharedPlace.Kind
  ) async throws {
    try await sideBySide(Self.workerCount) { worker in
      let history = try EditHistory(store)
      let step = Self.workerCount * Self.maximumLaunches
      for firstSeed in stride(from: worker * Self.maximumLaunches, to: Self.roundCount, by: step) {
        for seed in firstSeed..<min(firstSeed + Self.maximumLaunches, Self.roundCount) {
          try await Self.launchAndKill(in: history, seed: seed)
        }
        try await history.deliverAndCheck("history \(worker), seeds from \(firstSeed)")
      }
    }
  }

  private static func launchAndKill(in history: EditHistory, seed: Int) async throws {
    var child = try history.launch("a", seed: seed)
    await child.readLines(count: .random(in: 0...12))
    try await child.killAndRecord(in: history)
  }

  @Test(arguments: SharedPlace.Kind.allCases)
  func `No edit is lost or applied twice when one of two processes on a store is killed`(
    store: SharedPlace.Kind
  ) async throws {
    try await sideBySide(Self.workerCount) { worker in
      let history = try EditHistory(store)
      for seed in stride(from: worker, to: Self.roundCount / 2, by: Self.workerCount) {
        var children = [try history.launch("a", seed: 3 * seed), try history.launch("b", seed: 3 * seed + 1)]
        children.shuffle()
        await children[0].readLines(count: .random(in: 0...12))
        try await children[0].killAndRecord(in: history)
        await children[1].readLines(count: .random(in: 0...4))
        // The new process finds the edits of both writers. One of the two processes leads, and sends them.
        children[0] = try history.launch(children[0].writer, seed: 3 * seed + 2)
        for _ in 0..<6 { await children[.random(in: 0...1)].readLines(count: .random(in: 0...2)) }
        children.shuffle()
        for index in children.indices {
          try await children[index].killAndRecord(in: history)
          if index == 0 { await children[1].readLines(count: .random(in: 0...6)) }
        }
        try await history.deliverAndCheck("history \(worker), seed \(seed)")
      }
    }
  }

  @Test(arguments: SharedPlace.Kind.inFileSystem, Answer.allCases)
  func `An edit is applied at most once when the process is killed at a file system call`(
    store: SharedPlace.Kind, answer: Answer
  ) async throws {
    let step = Rounds.step(30)
    let firstCall = Int.random(in: 1...step)
    try await sideBySide(Self.workerCount) { worker in
      for fatalCall in stride(from: firstCall + worker * step, through: .max, by: Self.workerCount * step) {
        let lastSurvived = try await Self.killTwoAtCall(fatalCall, store, answer)
        if lastSurvived { break }
      }
    }
  }

  /// Runs two processes in turn, kills each at its file system call with the given number, and checks their edits.
  ///
  /// - Returns: Whether the last process made fewer calls, and so ended by itself.
  private static func killTwoAtCall(
    _ fatalCall: Int, _ store: SharedPlace.Kind, _ answer: Answer
  ) async throws -> Bool {
    let history = try EditHistory(store)
    var lastSurvived = false
    // The second process also handles the edits that the first one left.
    for launch in 0...1 {
      let number = launch * Edit.groupSize + answer.editPosition
      let arguments = ["\(fatalCall)", "\(number)", answer == .replyLost ? "losing-replies" : "answering"]
      var child = try ChildProcess("edit-dying-at-call", history.placeURL, arguments)
      var lines = await child.allLines()
      let end = await child.end()
      lastSurvived = end == .success
      // A process may still be killed after it has printed `done`, because its store still reads its own writes, which
      // takes further calls.
      if lines.last == "done" { lines.removeLast() } else { #expect(end == .killed) }
      try history.add(lines, by: "a", numberedFrom: number)
    }
    try await history.deliverAndCheck("call \(fatalCall), answer \(answer)")
    return lastSurvived
  }
}

/// A process that makes edits, and the lines of its output that were read so far.
private struct EditingChild {
  let writer: String
  let firstNumber: Int
  private var process: ChildProcess
  private var lines: [String] = []

  init(_ process: ChildProcess, writer: String, firstNumber: Int) {
    (self.process, self.writer, self.firstNumber) = (process, writer, firstNumber)
  }

  mutating func readLines(count: Int) async {
    for _ in 0..<count {
      if let line = await process.line() { lines.append(line) }
    }
  }

  mutating func killAndRecord(in history: EditHistory) async throws {
    process.kill()
    lines += await process.allLines()
    #expect(await process.end() == .killed, "\(lines)")
    try history.sharedPlace.waitForEffects(of: process)
    try history.add(lines, by: writer, numberedFrom: firstNumber)
  }
}

/// The positions of some edits in their group, named like the cases of `NumberedEdit.Change` of the child processes.
private enum Position {
  static let addFirst = 0
  static let addForbidden = 2
  static let setFirstAgain = 4
  static let addTaken = 5
}

/// An edit, whose key and number determine its outcome; see `NumberedEdit` of the child processes.
private struct Edit: Hashable, CustomStringConvertible {
  /// The final outcome of an edit; `applied` means that the server has applied it.
  enum Outcome: String {
    case applied, refused, conflicted
  }

  /// The number of consecutive edits of a writer that form a group, which has notes of its own.
  static let groupSize = 8

  let key: String
  let writer: String
  let number: Int

  init(key: String, writer: String, number: Int) {
    (self.key, self.writer, self.number) = (key, writer, number)
  }

  /// - Parameter name: The writer and the number, joined by a dot.
  init?(key: String, name: String) {
    let words = name.split(separator: ".").map(String.init)
    guard words.count == 2, let number = Int(words[1]) else { return nil }
    self.init(key: key, writer: words[0], number: number)
  }

  var description: String { "\(key) \(writer).\(number)" }

  var outcome: Outcome {
    switch position {
    case Position.addForbidden: .refused
    case Position.addTaken: .conflicted
    case Position.setFirstAgain where key == "shared": .conflicted
    default: .applied
    }
  }

  /// Whether `perform` may throw a conflict, because the repository may already know that the edit's note is removed.
  ///
  /// The process then prints `impossible`, and the edit doesn't become durable.
  var mayBeImpossible: Bool { position == Position.setFirstAgain && outcome == .conflicted }

  /// The position in the group.
  private var position: Int { number % Self.groupSize }
}

/// The report of a process that has delivered all edits.
private struct DeliveryReport {
  /// The lines that compare a stored or observed value with the server's.
  var comparisons: [String] = []
  /// The edits in the first observed value of each key.
  var editsInFirstValue: [String: Set<Edit>] = [:]
  /// The mutations that the repository still lists after the delivery; without a fault, they are refused or conflicted.
  var listed: [Edit: (id: String, standing: String)] = [:]
  var vanished: [Edit] = []
  var recordCount: Int?
  var unexpectedLines: [String] = []

  init(_ lines: [String]) {
    for line in lines {
      let words = line.split(separator: " ").map(String.init)
      let edit = words.count < 3 ? nil : Edit(key: words[1], name: words[2])
      switch (words.first, edit) {
      case ("first", _):
        editsInFirstValue[words[1]] = Set(words.dropFirst(2).compactMap { Edit(key: words[1], name: $0) })
      case ("listed", let edit?) where words.count >= 5:
        listed[edit] = (words[3], words[4...].joined(separator: " "))
      case ("vanished", let edit?): vanished.append(edit)
      case ("records", _): recordCount = Int(words[1])
      case ("stored", _), ("observed", _): comparisons.append(line)
      default: unexpectedLines.append(line)
      }
    }
  }
}

/// The edits that processes have made, sequentially or concurrently, with one store and one simulated server.
///
/// Used by one task only.
private final class EditHistory {
  /// The known facts about an acknowledged edit.
  private struct KnownFacts {
    var id: String?
    /// The result of its call; `nil` if the process was killed before the call returned.
    var result: String?
  }

  private static let keys = ["own", "shared"]

  let sharedPlace: SharedPlace
  /// The number of the first edit of each writer's next process.
  private var nextFirstNumbers: [String: Int] = [:]
  private var acknowledged: [Edit: KnownFacts] = [:]
  /// Edits whose call may have begun when the process was killed, so they may or may not be durable.
  private var uncertain: Set<Edit> = []
  /// Edits that an observed value had and the next one lacked, and that weren't checked yet.
  private var vanished: [Edit] = []

  init(_ store: SharedPlace.Kind) throws {
    sharedPlace = try SharedPlace(store)
  }

  var placeURL: URL { sharedPlace.url }

  func launch(_ writer: String, seed: Int) throws -> EditingChild {
    let firstNumber = nextFirstNumbers[writer] ?? 0
    let process = try ChildProcess("edit", placeURL, [writer, "\(firstNumber)", "\(seed)"])
    return EditingChild(process, writer: writer, firstNumber: firstNumber)
  }

  /// Records the lines that a process printed until it ended.
  func add(_ lines: [String], by writer: String, numberedFrom firstNumber: Int) throws {
    var lastNumbers = [String: Int](uniqueKeysWithValues: Self.keys.map { ($0, firstNumber - 1) })
    for line in lines {
      let words = line.split(separator: " ").map(String.init)
      if words.first == "vanished", words.count == 3, let edit = Edit(key: words[1], name: words[2]) {
        vanished.append(edit)
        continue
      }
      let number = try #require(words.count == 4 ? Int(words[2]) : nil, "\(line)")
      let edit = Edit(key: words[1], writer: writer, number: number)
      lastNumbers[edit.key] = max(try #require(lastNumbers[edit.key]), number)
      switch (words[0], words[3]) {
      case ("durable", let id): acknowledged[edit, default: KnownFacts()].id = id
      case ("ended", "impossible"): #expect(edit.mayBeImpossible, "\(line)")
      case ("ended", let result): acknowledged[edit, default: KnownFacts()].result = result
      default: Issue.record("\(line)")
      }
    }
    for (key, number) in lastNumbers { uncertain.insert(Edit(key: key, writer: writer, number: number + 1)) }
    // The next process begins with a new group of edits.
    let lastGroup = ((lastNumbers.values.max() ?? firstNumber) + 1) / Edit.groupSize
    nextFirstNumbers[writer] = (lastGroup + 1) * Edit.groupSize
  }

  /// Delivers the remaining edits, and compares the result with the acknowledged edits.
  func deliverAndCheck(_ situation: String) async throws {
    var child = try ChildProcess("deliver-edits", placeURL)
    let lines = await child.allLines()
    #expect(await child.end() == .success, "\(situation)")
    let report = DeliveryReport(lines)
    var faults = takeFaults(in: report, applied: try appliedEdits())
    let path = placeURL.path(percentEncoded: false)
    // Only the place of a store in files has no path extension.
    if placeURL.pathExtension.isEmpty, FileManager.default.fileExists(atPath: path) {
      let files = try FileManager.default.contentsOfDirectory(atPath: path)
      faults += files.filter { $0.contains("corrupt") }.map { "\($0) was quarantined" }
    }
    #expect(faults == [], "\(situation)")
    // A fault persists, so later checks of this history would only report it again.
    try #require(faults.isEmpty)
  }

  /// Returns the edits that the server has applied, in order, from its file.
  private func appliedEdits() throws -> [(edit: Edit, id: String)] {
    let file = sharedPlace.folder.url.appending(path: "server")
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      let number = try #require(words.count == 4 ? Int(words[3]) : nil, "\(line)")
      return (Edit(key: words[1], writer: words[2], number: number), words[0])
    }
  }

  /// Returns the faults, and forgets the edits that have vanished.
  private func takeFaults(in report: DeliveryReport, applied: [(edit: Edit, id: String)]) -> [String] {
    var faults = report.unexpectedLines
    let expected = ["stored", "observed"].flatMap { origin in Self.keys.map { "\(origin) \($0) agrees" } }
    faults += Set(report.comparisons).symmetricDifference(expected).sorted()
    if report.recordCount != report.listed.count {
      faults.append("\(report.recordCount ?? 0) records for \(report.listed.count) listed mutations")
    }
    for edit in vanished + report.vanished where edit.outcome == .applied { faults.append("\(edit) vanished") }
    vanished = []

    let appliedIDs = Dictionary(applied.map { ($0.edit, $0.id) }) { first, _ in first }
    if appliedIDs.count != applied.count || Set(applied.map(\.id)).count != applied.count {
      faults.append("duplicates: \(applied)")
    }
    for (lane, edits) in Dictionary(grouping: applied.map(\.edit), by: { "\($0.key) of \($0.writer)" }) {
      let numbers = edits.map(\.number)
      if numbers != numbers.sorted() { faults.append("\(lane) out of order: \(numbers)") }
    }
    for edit in Set(appliedIDs.keys).union(report.listed.keys) {
      if acknowledged[edit] == nil, !uncertain.contains(edit) {
        faults.append("\(edit) is applied or listed, but no process began it")
      }
      let outcome = report.listed[edit]?.standing ?? Edit.Outcome.applied.rawValue
      if outcome != edit.outcome.rawValue { faults.append("\(edit) has the outcome \(outcome)") }
      if appliedIDs[edit] != nil, report.listed[edit] != nil { faults.append("\(edit) is applied, but still listed") }
    }
    for (edit, facts) in acknowledged {
      let id: String?
      switch edit.outcome {
      case .applied:
        id = appliedIDs[edit]
        if id == nil { faults.append("\(edit) is lost") }
        if !(report.editsInFirstValue[edit.key]?.contains(edit) ?? false) {
          faults.append("\(edit) isn't in the first value")
        }
      case .conflicted:
        id = report.listed[edit]?.id
        if id == nil { faults.append("\(edit) isn't listed") }
      case .refused:
        id = report.listed[edit]?.id
        // The edit is listed if its call returned `queued`, and isn't if the call threw the server's error. If the
        // process was killed before it printed the result of the call, either may be the case.
        if facts.result == "queued", id == nil { faults.append("\(edit) isn't listed") }
        if facts.result == "refused", id != nil { faults.append("\(edit) is listed") }
      }
      if let id, let durableID = facts.id, id != durableID {
        faults.append("\(edit) has the id \(id), not \(durableID)")
      }
      let possibleResults = ["queued", edit.outcome == .applied ? "confirmed" : edit.outcome.rawValue]
      if let result = facts.result, !possibleResults.contains(result) {
        faults.append("\(edit) ended with the result \(result)")
      }
    }
    return faults
  }
}
