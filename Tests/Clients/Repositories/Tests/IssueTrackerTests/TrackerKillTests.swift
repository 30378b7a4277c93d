import Foundation
import IssueTracker
import MulticastTesting
import Testing

/// Kills the app of `TrackerChild`, and at times the server, while the network and the server fail at random.
@Suite(.timeLimit(.minutes(15))) struct TrackerKillTests {
  /// The number of processes that are killed.
  private static let killCount = Rounds.count(6, full: 50)

  @Test func `A killed app loses no change, makes none twice, and shortens no list`() async throws {
    let folder = try TemporaryFolder()
    let server = try await TrackerServer(journal: folder.url.appending(path: "journal"), tokenLifetime: 1)
    var run = Run(server: server, store: folder.url.appending(path: "store"), random: SplitMix64(seed: Rounds.seed))
    let result: Result<Void, any Error>
    do {
      try await run.createIssues(count: 200)
      for round in 0..<Self.killCount { try await run.editUntilKilled(round) }
      try await run.deliver()
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await server.stop()
    try result.get()
    let violations = run.history.violations
    if !violations.isEmpty {
      Testing.Issue.record("MOMENTS_SEED=\(Rounds.seed), \(run.history): \(violations.prefix(5))")
      for issue in run.history.issuesOutOfOrder {
        let requests = try await server.requests(containing: issue)
        Testing.Issue.record("requests for \(issue):\n\(requests.joined(separator: "\n"))")
      }
    }
  }
}

/// One app, whose processes follow each other on one store.
private struct Run {
  let server: TrackerServer
  let store: URL
  var random: SplitMix64
  var history = History()
  private var otherNumber = 0

  init(server: TrackerServer, store: URL, random: SplitMix64) {
    (self.server, self.store, self.random) = (server, store, random)
  }

  func createIssues(count: Int) async throws {
    for number in 0..<count {
      _ = try await server.admin.create(
        Issue(id: "s\(number)", title: "new"), in: "moments", requestID: "other-s\(number)")
    }
  }

  /// Starts a process that edits, and kills it after a random number of its lines.
  ///
  /// The first process isn't killed before it has loaded five pages.
  mutating func editUntilKilled(_ round: Int) async throws {
    try await server.setFaults(rate: 0.3, seed: random.next())
    var child = try launch(["edit"], ["\(random.next())", "\(round * 1000)"])
    if let pending = await child.line() {
      history.add(pending)
      history.check(try await server.changes())
    }
    if round == 0 { while let line = await child.line(), !line.hasPrefix("list") { history.add(line) } }
    let lineCount = Int.random(in: 0...150, using: &random)
    let fatalLine = Int.random(in: 0...150, using: &random)
    for number in 0..<lineCount {
      guard let line = await child.line() else { break }
      history.add(line)
      if number == fatalLine { try await interruptServer() }
      if Int.random(in: 0..<10, using: &random) == 0 { await editAsOther() }
    }
    await child.kill()
    for line in await child.remainingLines() { history.add(line) }
    await #expect(child.wasKilled)
  }

  /// Kills the server and starts it again, or only makes it forget who is signed in.
  private mutating func interruptServer() async throws {
    if Bool.random(using: &random) { return try await server.signOutAll() }
    try await server.restart()
    try await server.setFaults(rate: 0.3, seed: random.next())
  }

  /// Changes one of the newest issues as another user; the change may be impossible.
  private mutating func editAsOther() async {
    otherNumber += 1
    let (key, text, admin) = ("other-\(otherNumber)", "other", server.admin)
    do throws(TrackerError) {
      let issues = try await admin.issues(of: "moments", after: nil, limit: 10).issues
      guard let issue = issues.randomElement(using: &random) else { return }
      switch Int.random(in: 0..<4, using: &random) {
      case 0: _ = try await admin.create(Issue(id: key, title: text), in: "moments", requestID: key)
      case 1: _ = try await admin.edit(issue.id, ["title": text], requestID: key)
      case 2: _ = try await admin.edit(issue.id, ["state": "closed", "reason": text], requestID: key)
      default: _ = try await admin.add(IssueComment(id: key, text: text), to: issue.id, requestID: key)
      }
    } catch {}
  }

  /// Starts a process that delivers what is left, and checks what it shows at the end.
  mutating func deliver() async throws {
    try await server.setFaults(rate: 0, seed: 0)
    var child = try launch(["deliver"], history.issuesWithDetails)
    var shown: [Issue]?
    var details: [IssueDetail] = []
    for line in await child.remainingLines() {
      let json = Data(line.drop { $0 != " " }.utf8)
      if line.hasPrefix("final ") {
        shown = try JSONDecoder().decode([Issue].self, from: json)
      } else if line.hasPrefix("detail ") {
        details.append(try JSONDecoder().decode(IssueDetail.self, from: json))
      } else {
        history.add(line)
      }
    }
    await child.end()
    await #expect(child.hasSucceeded)
    let list = try await server.admin.issues(of: "moments", after: nil, limit: .max).issues
    history.checkEnd(try await server.changes(), list: list, shown: try #require(shown))
    for detail in details { try await #expect(server.admin.issue(detail.issue.id) == detail) }
  }

  private func launch(_ command: [String], _ arguments: [String]) throws -> Program {
    try Program(
      named: "TrackerChild",
      command + [server.url.absoluteString, store.path(percentEncoded: false)] + arguments)
  }
}
