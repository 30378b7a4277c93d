import Foundation
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
  /// The way in which the server answers the edits of a process that is killed at a file system call.
  enum Course: CaseIterable {
    case confirmed, replyLost, refused, conflicted

    fileprivate var change: Int {
      switch self {
      case .confirmed, .replyLost: 0
      case .refused: 2
      case .conflicted: 5
      }
    }
  }

  /// The number of processes that the first test kills at random instants: `MOMENTS_KILL_ROUNDS` in the environment, or
  /// 24 without it.
  ///
  /// A higher number also makes the other tests kill more processes.
  private static let rounds = ProcessInfo.processInfo.environment["MOMENTS_KILL_ROUNDS"].flatMap { Int($0) } ?? 24

  /// The maximum number of launches between two calls of ``EditHistory/finish(_:)``, which delivers the edits.
  ///
  /// It must be less than five: a mutation is refused once five processes in a row have ended while sending it.
  private static let maximumLaunches = 4

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Every acknowledged edit of a killed process is applied once, in order, and stays visible`(
    store: SharedPlace.Kind
  ) async throws {
    try await sideBySide(4) { number in
      let history = try EditHistory(store)
      for first in stride(from: number * Self.maximumLaunches, to: Self.rounds, by: 4 * Self.maximumLaunches) {
        for seed in first..<min(first + Self.maximumLaunches, Self.rounds) {
          try await Self.killOne(in: history, seed: seed)
        }
        try await history.finish("history \(number), seeds from \(first)")
      }
    }
  }

  private static func killOne(in history: EditHistory, seed: Int) async throws {
    var child = try history.launch("a", seed: seed)
    await child.run(forLines: .random(in: 0...12))
    try await child.kill(in: history)
  }

  @Test(arguments: SharedPlace.Kind.allCases)
  func `No edit is lost or applied twice when one of two processes on a store is killed`(
    store: SharedPlace.Kind
  ) async throws {
    try await sideBySide(4) { number in
      let history = try EditHistory(store)
      for seed in stride(from: number, to: Self.rounds / 2, by: 4) {
        var children = [try history.launch("a", seed: 3 * seed), try history.launch("b", seed: 3 * seed + 1)]
        children.shuffle()
        await children[0].run(forLines: .random(in: 0...12))
        try await children[0].kill(in: history)
        await children[1].run(forLines: .random(in: 0...4))
        // The new process finds the edits of both writers. One of the two processes leads, and sends them.
        children[0] = try history.launch(children[0].writer, seed: 3 * seed + 2)
        for _ in 0..<6 { await children[.random(in: 0...1)].run(forLines: .random(in: 0...2)) }
        children.shuffle()
        for index in children.indices {
          try await children[index].kill(in: history)
          if index == 0 { await children[1].run(forLines: .random(in: 0...6)) }
        }
        try await history.finish("history \(number), seed \(seed)")
      }
    }
  }

  @Test(arguments: SharedPlace.Kind.inFileSystem, Course.allCases)
  func `An edit is applied at most once when the process is killed at a file system call`(
    store: SharedPlace.Kind, course: Course
  ) async throws {
    // With at least 100 rounds, a process is killed at each file system call, and otherwise at every sixth call.
    let step = Self.rounds < 100 ? 6 : 1
    let first = Int.random(in: 1...step)
    try await sideBySide(4) { number in
      for fatal in stride(from: first + number * step, through: .max, by: 4 * step) {
        if try await Self.dieAtCall(fatal, store, course) { break }
      }
    }
  }

  /// Runs two processes, one after the other, each of which is killed at its file system call with the given number.
  ///
  /// - Returns: Whether the last process made fewer calls, and so ended by itself.
  private static func dieAtCall(_ fatal: Int, _ store: SharedPlace.Kind, _ course: Course) async throws -> Bool {
    let history = try EditHistory(store)
    var hasLived = false
    // The second process also handles the edits that the first one left.
    for launch in 0...1 {
      let number = launch * 8 + course.change
      let words = ["\(fatal)", "\(number)", course == .replyLost ? "losing-replies" : "answering"]
      var child = try ChildProcess("edit-dying-at-call", history.place, words)
      var lines = await child.allLines()
      let end = await child.end()
      hasLived = end == .success
      // A process may still be killed after it has printed `done`, because its store still reads its own writes, which
      // takes further calls.
      if lines.last == "done" { lines.removeLast() } else { #expect(end == .killed) }
      try history.add(lines, by: "a", from: number)
    }
    try await history.finish("call \(fatal) of \(course)")
    return hasLived
  }
}

/// A process that makes edits, and the lines of its output that were read so far.
private struct EditingChild {
  let writer: String
  let first: Int
  private var process: ChildProcess
  private var lines: [String] = []

  init(_ process: ChildProcess, writer: String, first: Int) {
    (self.process, self.writer, self.first) = (process, writer, first)
  }

  mutating func run(forLines count: Int) async {
    for _ in 0..<count {
      if let line = await process.line() { lines.append(line) }
    }
  }

  mutating func kill(in history: EditHistory) async throws {
    process.kill()
    lines += await process.allLines()
    #expect(await process.end() == .killed, "\(lines)")
    try history.shared.waitForEffects(of: process)
    try history.add(lines, by: writer, from: first)
  }
}

/// An edit, whose key and number determine its outcome; see `NumberedEdit` of the child processes.
private struct Edit: Hashable, CustomStringConvertible {
  /// The final outcome of an edit; `made` means that the server has applied it.
  enum Outcome: String {
    case made, refused, conflicted
  }

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
    switch number % 8 {
    case 2: .refused
    case 5: .conflicted
    case 4 where key == "shared": .conflicted
    default: .made
    }
  }

  /// Whether `perform` may throw a conflict.
  var mayBeImpossible: Bool { number % 8 == 4 && outcome == .conflicted }
}

/// The report of a process that has delivered all edits.
private struct DeliveryReport {
  var agreements: [String] = []
  var first: [String: Set<Edit>] = [:]
  var listed: [Edit: (id: String, standing: String)] = [:]
  var vanished: [Edit] = []
  var recordCount: Int?
  var others: [String] = []

  init(_ lines: [String]) {
    for line in lines {
      let words = line.split(separator: " ").map(String.init)
      let edit = words.count < 3 ? nil : Edit(key: words[1], name: words[2])
      switch (words.first, edit) {
      case ("first", _): first[words[1]] = Set(words.dropFirst(2).compactMap { Edit(key: words[1], name: $0) })
      case ("listed", let edit?) where words.count >= 5:
        listed[edit] = (words[3], words[4...].joined(separator: " "))
      case ("vanished", let edit?): vanished.append(edit)
      case ("records", _): recordCount = Int(words[1])
      case ("stored", _), ("observed", _): agreements.append(line)
      default: others.append(line)
      }
    }
  }
}

/// The edits that processes have made, sequentially or concurrently, with one store and one simulated server.
///
/// Used by one task only.
private final class EditHistory {
  /// The known facts about an acknowledged edit.
  private struct Acknowledged {
    var id: String?
    /// The result of its call; `nil` if the process was killed before the call returned.
    var result: String?
  }

  private static let keys = ["own", "shared"]

  let shared: SharedPlace
  /// The number of the first edit of each writer's next process.
  private var next: [String: Int] = [:]
  private var acknowledged: [Edit: Acknowledged] = [:]
  /// Edits whose call may have begun when the process was killed, so they may or may not be durable.
  private var uncertain: Set<Edit> = []
  private var vanished: [Edit] = []

  init(_ store: SharedPlace.Kind) throws {
    shared = try SharedPlace(store)
  }

  var place: URL { shared.url }

  func launch(_ writer: String, seed: Int) throws -> EditingChild {
    let first = next[writer] ?? 0
    let process = try ChildProcess("edit", place, [writer, "\(first)", "\(seed)"])
    return EditingChild(process, writer: writer, first: first)
  }

  /// Records the lines that a process wrote before it was killed.
  func add(_ lines: [String], by writer: String, from first: Int) throws {
    var last = [String: Int](uniqueKeysWithValues: Self.keys.map { ($0, first - 1) })
    for line in lines {
      let words = line.split(separator: " ").map(String.init)
      if words.first == "vanished", words.count == 3, let edit = Edit(key: words[1], name: words[2]) {
        vanished.append(edit)
        continue
      }
      let number = try #require(words.count == 4 ? Int(words[2]) : nil, "\(line)")
      let edit = Edit(key: words[1], writer: writer, number: number)
      last[edit.key] = max(try #require(last[edit.key]), number)
      switch (words[0], words[3]) {
      case ("durable", let id): acknowledged[edit, default: Acknowledged()].id = id
      case ("ended", "impossible"): #expect(edit.mayBeImpossible, "\(line)")
      case ("ended", let result): acknowledged[edit, default: Acknowledged()].result = result
      default: Issue.record("\(line)")
      }
    }
    for (key, number) in last { uncertain.insert(Edit(key: key, writer: writer, number: number + 1)) }
    // The next process begins with a new group of eight edits, which has notes of its own.
    next[writer] = ((last.values.max() ?? first) + 1) / 8 * 8 + 8
  }

  /// Delivers the remaining edits, and compares the result with the acknowledged edits.
  func finish(_ situation: String) async throws {
    var child = try ChildProcess("deliver-edits", place)
    let lines = await child.allLines()
    #expect(await child.end() == .success, "\(situation)")
    let report = DeliveryReport(lines)
    var faults = faults(in: report, made: try madeEdits())
    let path = place.path(percentEncoded: false)
    if place.pathExtension.isEmpty, FileManager.default.fileExists(atPath: path) {
      let files = try FileManager.default.contentsOfDirectory(atPath: path)
      faults += files.filter { $0.contains("corrupt") }.map { "\($0) was quarantined" }
    }
    #expect(faults == [], "\(situation)")
    // A fault persists, so later checks of this history would only report it again.
    try #require(faults.isEmpty)
  }

  /// Returns the edits that the server has applied, in order, from its file.
  private func madeEdits() throws -> [(edit: Edit, id: String)] {
    let file = shared.folder.url.appending(path: "server")
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      let number = try #require(words.count == 4 ? Int(words[3]) : nil, "\(line)")
      return (Edit(key: words[1], writer: words[2], number: number), words[0])
    }
  }

  private func faults(in report: DeliveryReport, made: [(edit: Edit, id: String)]) -> [String] {
    var faults = report.others
    let agreements = ["stored", "observed"].flatMap { what in Self.keys.map { "\(what) \($0) agrees" } }
    faults += Set(report.agreements).symmetricDifference(agreements).sorted()
    if report.recordCount != report.listed.count {
      faults.append("\(report.recordCount ?? 0) records for \(report.listed.count) listed mutations")
    }
    for edit in vanished + report.vanished where edit.outcome == .made { faults.append("\(edit) vanished") }
    vanished = []

    let madeIDs = Dictionary(made.map { ($0.edit, $0.id) }) { first, _ in first }
    if madeIDs.count != made.count || Set(made.map(\.id)).count != made.count { faults.append("duplicates: \(made)") }
    for (lane, edits) in Dictionary(grouping: made.map(\.edit), by: { "\($0.key) of \($0.writer)" }) {
      let numbers = edits.map(\.number)
      if numbers != numbers.sorted() { faults.append("\(lane) out of order: \(numbers)") }
    }
    for edit in Set(madeIDs.keys).union(report.listed.keys) {
      if acknowledged[edit] == nil, !uncertain.contains(edit) {
        faults.append("\(edit) is applied or listed, but no process began it")
      }
      let outcome = report.listed[edit]?.standing ?? Edit.Outcome.made.rawValue
      if outcome != edit.outcome.rawValue { faults.append("\(edit) has the outcome \(outcome)") }
      if madeIDs[edit] != nil, report.listed[edit] != nil { faults.append("\(edit) is applied, but still listed") }
    }
    for (edit, known) in acknowledged {
      let id: String?
      switch edit.outcome {
      case .made:
        id = madeIDs[edit]
        if id == nil { faults.append("\(edit) is lost") }
        if !(report.first[edit.key]?.contains(edit) ?? false) { faults.append("\(edit) isn't in the first value") }
      case .conflicted:
        id = report.listed[edit]?.id
        if id == nil { faults.append("\(edit) isn't listed") }
      case .refused:
        id = report.listed[edit]?.id
        // The edit isn't listed if the caller got the error. It may be listed if the process was killed before that.
        if known.result == "queued", id == nil { faults.append("\(edit) isn't listed") }
        if known.result == "refused", id != nil { faults.append("\(edit) is listed") }
      }
      if let id, let knownID = known.id, id != knownID { faults.append("\(edit) has the id \(id), not \(knownID)") }
      let results = ["queued", edit.outcome == .made ? "confirmed" : edit.outcome.rawValue]
      if let result = known.result, !results.contains(result) { faults.append("\(edit) ended \(result)") }
    }
    return faults
  }
}
