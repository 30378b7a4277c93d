/// The edits that the editors of one store have made, and what was wrong with them.
///
/// `Editor` documents the lines of a process. An edit is accepted once its process has printed that it is durable, which
/// it prints before the result of its call.
struct EditHistory {
  /// The mark of an edit.
  private struct Mark: Hashable, CustomStringConvertible {
    let process: Int
    let lane: String
    let number: Int

    init?(_ text: String) {
      let parts = text.split(separator: ".").map(String.init)
      guard parts.count == 3, let process = Int(parts[0]), let number = Int(parts[2]) else { return nil }
      (self.process, lane, self.number) = (process, parts[1], number)
    }

    var description: String { "\(process).\(lane).\(number)" }
  }

  /// What is known of a process.
  private struct Process {
    let startedAt: Int
    var endedAt: Int?
    /// The ids of the edits that were accepted before it started.
    let acceptedBefore: Set<String>
    /// The least version that the value of an issue must have.
    let versionsBefore: [String: Int]
    /// Whether it can read all values.
    let readsAllValues: Bool
  }

  /// What was wrong.
  private(set) var violations: [String] = []
  /// The number of edits that this version of the program could not read when it listed them.
  private(set) var unreadableCount = 0
  /// The number of calls of the file system that the last process that printed it has made.
  private(set) var callCount: Int?
  /// Whether the last queue that was printed was empty.
  private(set) var isQueueEmpty = false
  private var processes: [Process] = []
  private var begun: Set<Mark> = []
  private var idsByMark: [Mark: String] = [:]
  /// The queues that were printed, and the accepted edits that each must list.
  private var listed: [(process: Int, ids: Set<String>, accepted: Set<String>)] = []
  private var versions: [String: Int] = [:]
  private var recordCount = 0
  /// Counts the starts and ends of processes.
  private var time = 0

  /// The number of accepted edits.
  var acceptedCount: Int { idsByMark.count }

  // MARK: - Recording

  /// Records the start of a process, and returns its number.
  mutating func start(readsAllValues: Bool) -> Int {
    time += 1
    processes.append(
      Process(
        startedAt: time, acceptedBefore: Set(idsByMark.values), versionsBefore: versions,
        readsAllValues: readsAllValues))
    return processes.count - 1
  }

  /// Records that no further effect of a process is possible.
  mutating func end(_ process: Int) {
    time += 1
    processes[process].endedAt = time
  }

  /// Adds a line of a process.
  mutating func add(_ line: String, of process: Int) {
    let words = line.split(separator: " ").map(String.init)
    switch (words.first, words.count) {
    case ("queue", _): addQueue(words, of: process)
    case ("begin", 2): if let mark = Mark(words[1]) { begun.insert(mark) }
    case ("durable", 3): if let mark = Mark(words[1]) { idsByMark[mark] = words[2] }
    case ("ack", 3):
      if Mark(words[1]).flatMap({ idsByMark[$0] }) == nil { report("process \(process): not durable: \(line)") }
      if words[2] == "conflicted" { report(line) }
    case ("rejected", _) where !processes[process].readsAllValues:
      if let mark = Mark(words[1]) { begun.remove(mark) }
    case ("unreadable", _) where !processes[process].readsAllValues: break
    case ("value", 3): addVersion(Int(words[2]), of: words[1], in: process)
    case ("record", _): recordCount += 1
    case ("calls", 2): callCount = Int(words[1])
    case ("stored", _), ("edited", _), ("done", _): break
    default: report("process \(process): \(line)")
    }
  }

  private mutating func addQueue(_ words: [String], of process: Int) {
    guard let separator = words.lastIndex(of: "unreadable") else { return report("a queue without its end") }
    unreadableCount += words.count - separator - 1
    let ownIDs = idsByMark.filter { $0.key.process == process }.values
    let ids = Set(words[2...]).subtracting(["unreadable"])
    isQueueEmpty = ids.isEmpty
    listed.append((process, ids, processes[process].acceptedBefore.union(ownIDs)))
  }

  private mutating func addVersion(_ version: Int?, of issue: String, in process: Int) {
    let least = processes[process].versionsBefore[issue] ?? 0
    if version ?? 0 < least, version != nil || processes[process].readsAllValues {
      report("process \(process) shows version \(version ?? 0) of \(issue) instead of \(least)")
    }
    versions[issue] = max(versions[issue] ?? 0, version ?? 0)
  }

  /// Adds something that was wrong.
  mutating func report(_ violation: String) {
    if !violations.contains(violation) { violations.append(violation) }
  }

  // MARK: - Checking

  /// Checks that each accepted edit was applied once, or is in all queues that were printed since the last check.
  ///
  /// - Parameter changes: The changes that the server had applied after the queues were printed.
  mutating func check(_ changes: [TrackerServer.Change]) {
    let edits = changes.filter { !$0.isByOthers }
    let marks = edits.compactMap { Mark($0.mark) }
    let ids = Set(edits.map(\.key))
    if Set(marks).count != edits.count || ids.count != edits.count { report("made twice: \(marks)") }
    // All lines of a process that has ended are known.
    for (mark, edit) in zip(marks, edits) where processes[mark.process].endedAt != nil {
      if !begun.contains(mark) { report("\(mark) was never made") }
      if let id = idsByMark[mark], id != edit.key { report("\(mark) was sent as \(edit.key) instead of \(id)") }
    }
    for (process, queue, accepted) in listed {
      let lost = accepted.subtracting(ids).subtracting(queue)
      if !lost.isEmpty { report("process \(process) doesn't list \(self.marks(of: lost))") }
    }
    listed = []
    checkOrder(marks)
  }

  /// Checks that the edits of a lane were applied in the order in which they became durable, as far as it is known.
  private mutating func checkOrder(_ marks: [Mark]) {
    for (lane, marks) in Dictionary(grouping: marks, by: \.lane) {
      for (index, later) in marks.enumerated() {
        for earlier in marks[..<index] where mustPrecede(later, earlier) {
          report("lane \(lane) isn't in order: \(earlier) before \(later) in \(marks)")
        }
      }
    }
  }

  private func mustPrecede(_ first: Mark, _ second: Mark) -> Bool {
    if first.process == second.process { return first.number < second.number }
    return processes[first.process].endedAt.map { $0 < processes[second.process].startedAt } ?? false
  }

  /// Checks that all accepted edits were applied, and that none is left, after the store was inspected.
  mutating func checkEnd(_ changes: [TrackerServer.Change]) {
    check(changes)
    let lost = Set(idsByMark.values).subtracting(changes.map(\.key))
    if !lost.isEmpty { report("never sent: \(marks(of: lost))") }
    if recordCount > 0 { report("\(recordCount) records are left") }
    recordCount = 0
    for (issue, changes) in Dictionary(grouping: changes.filter { !$0.isByOthers }, by: \.issue) {
      // A new issue has version 1.
      if versions[issue] != changes.count + 1 {
        report("version \(versions[issue] ?? 0) of \(issue) is shown after \(changes.count) edits")
      }
    }
  }

  private func marks(of ids: Set<String>) -> [String] {
    idsByMark.filter { ids.contains($0.value) }.map { "\($0.key)" }.sorted()
  }
}

extension TrackerServer.Change {
  /// The issue of a change other than its creation.
  fileprivate var issue: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
}
