import IssueTracker
import Repository

/// The changes that the processes of one app have made, and what was wrong with them.
///
/// `TrackerChild` documents the lines of a process. A change is acknowledged once its process has printed that its call
/// has returned.
struct History: CustomStringConvertible {
  /// A mutation that the server didn't accept.
  private struct Rejection {
    let mark: String
    let reason: String
    /// Whether the app was about to remove it from the queue.
    let isDropped: Bool
  }

  /// The number of changes that a process makes at the same time.
  private static let editorCount = 3

  /// What was wrong.
  private(set) var violations: [String] = []
  /// The marks of the changes in the order in which they were made, by lane.
  private var lanes: [String: [String]] = [:]
  private var lanesByMark: [String: String] = [:]
  private var acknowledged: Set<String> = []
  private var rejections: [Rejection] = []
  private var pending: Set<String> = []
  /// The marks of changes that were sent again at the end of their lanes.
  private var requeued: Set<String> = []
  /// The number of issues that the list must show at least.
  private var minimumCount = 0

  /// The issues with a lane that isn't in order.
  private(set) var issuesOutOfOrder: Set<String> = []

  /// The issues whose screens have changes.
  var issuesWithDetails: [String] { lanes.keys.filter { $0.hasPrefix("detail/") }.map { Self.issue(ofLane: $0) } }

  var description: String {
    """
    \(lanesByMark.count) changes, \(acknowledged.count) acknowledged, \(rejections.count) rejected, \
    \(requeued.count) requeued
    """
  }

  /// Adds a line of a process.
  mutating func add(_ line: String) {
    let words = line.split(separator: " ").map(String.init)
    switch words.first {
    case "pending":
      pending = Set(words.dropFirst())
      // The process was killed before the removal was durable, so the next one sends the mutation again.
      rejections.removeAll { $0.isDropped && pending.contains($0.mark) }
    case "list": addList(count: Int(words[1]) ?? 0)
    case "loaded":
      // Each editor may have begun a deletion that the list didn't show yet.
      minimumCount = max(minimumCount, (Int(words[1]) ?? 0) - Self.editorCount)
    case "begin":
      if words[2].hasPrefix("delete-") { minimumCount -= 1 }
      // A deletion that wasn't durable when its process was killed is made again.
      lanes[words[1], default: []].removeAll { $0 == words[2] }
      lanes[words[1], default: []].append(words[2])
      lanesByMark[words[2]] = words[1]
    case "ack": acknowledged.insert(words[1])
    case "failed", "dropped":
      let reason = words.dropFirst(2).joined(separator: " ")
      rejections.append(Rejection(mark: words[1], reason: reason, isDropped: words[0] == "dropped"))
    case "requeued": requeued.insert(words[1])
    default: report("unexpected line: \(line)")
    }
  }

  private mutating func report(_ violation: String) {
    if !violations.contains(violation) { violations.append(violation) }
  }

  private mutating func addList(count: Int) {
    guard count < minimumCount else { return }
    report("the list has \(count) issues instead of at least \(minimumCount)")
    // So that only a further fall is another violation.
    minimumCount = count
  }

  /// Checks that the server has each acknowledged change once, unless it is pending, and those of a lane in order.
  ///
  /// - Parameter changes: The changes that the server had applied after the last line of pending changes.
  mutating func check(_ changes: [TrackerServer.Change]) {
    let applied = changes.filter { !$0.isByOthers }.map(\.mark)
    let positions = Dictionary(applied.enumerated().map { ($1, $0) }) { first, _ in first }
    if applied.count != positions.count { report("a change was made twice: \(Self.repeated(applied))") }
    for mark in applied where lanesByMark[mark] == nil { report("the app didn't make \(mark)") }
    let deleted = Set(applied.filter { $0.hasPrefix("delete-") }.map { $0.dropFirst(7).description })
    for rejection in rejections {
      if positions[rejection.mark] != nil { report("\(rejection.mark) was made and rejected") }
      let issue = Self.issue(ofLane: lanesByMark[rejection.mark] ?? "")
      let mayConflict = rejection.mark.hasPrefix("state-") || rejection.mark.hasPrefix("body-")
      let isExpected = rejection.reason == "missing" ? deleted.contains(issue) : mayConflict
      if !isExpected { report("\(rejection.mark) was rejected: \(rejection.reason)") }
    }
    let lost = acknowledged.subtracting(positions.keys).subtracting(pending).subtracting(rejections.map(\.mark))
    if !lost.isEmpty { report("lost: \(lost.sorted())") }
    for (lane, marks) in lanes {
      let order = marks.filter { !requeued.contains($0) }.compactMap { positions[$0] }
      if order != order.sorted() {
        issuesOutOfOrder.insert(Self.issue(ofLane: lane))
        report("lane \(lane) isn't in order: \(marks.map { "\($0): \(positions[$0].map(String.init) ?? "–")" })")
      }
    }
  }

  /// Checks that no change is pending, and that the screens show what the server has.
  mutating func checkEnd(_ changes: [TrackerServer.Change], list: [Issue], shown: [Issue]) {
    check(changes)
    if !pending.isEmpty { report("still pending: \(pending.sorted())") }
    if list != changes.issues { report("the server has other issues than the changes make") }
    if shown != list {
      let differences = shown.difference(from: list).map { "\($0)" }.prefix(6).joined(separator: "\n")
      report("the list shows other issues than the server has:\n\(differences)")
    }
  }

  private static func issue(ofLane lane: String) -> String {
    String(lane.split(separator: "/").last ?? "")
  }

  private static func repeated(_ marks: [String]) -> [String] {
    Dictionary(grouping: marks) { $0 }.filter { $1.count > 1 }.keys.sorted()
  }
}

extension TrackerServer.Change {
  /// Whether another user than that of the app made the change.
  var isByOthers: Bool { key.hasPrefix("other-") }

  private var names: [String] { path.split(separator: "/").map(String.init) }

  /// The mark of a change that a `TrackerChild` made.
  var mark: String {
    switch method {
    case "POST": body["id"] ?? ""
    case "DELETE": "delete-\(names[1])"
    default: body["title"] ?? body["reason"] ?? body["body"] ?? ""
    }
  }

  /// Makes the change as the app's mutations make it.
  fileprivate func apply(to issues: inout Paged<Issue>, number: inout Int) {
    switch (method, names.last) {
    case ("POST", "issues"):
      number += 1
      var issue = Issue(id: body["id"] ?? "", title: body["title"] ?? "")
      issue.number = number
      IssuesSource.Mutation.create(issue).apply(to: &issues)
    case ("POST", _): issues.update(names[1]) { $0.commentCount += 1 }
    case ("DELETE", _): IssuesSource.Mutation.delete(names[1]).apply(to: &issues)
    default:
      if let title = body["title"] { IssuesSource.Mutation.rename(names[1], title: title).apply(to: &issues) }
      if let state = body["state"].flatMap(Issue.State.init) {
        IssuesSource.Mutation.setState(names[1], state, reason: body["reason"] ?? "").apply(to: &issues)
      }
    }
  }
}

extension [TrackerServer.Change] {
  /// The issues after all changes, the newest first.
  var issues: [Issue] {
    var issues = Paged<Issue>()
    var number = 0
    for change in self { change.apply(to: &issues, number: &number) }
    return issues.elements
  }
}
