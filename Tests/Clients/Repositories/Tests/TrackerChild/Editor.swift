internal import Foundation
internal import IssueTracker
internal import MulticastTesting
internal import Repository

/// A user who changes issues, which no other editor of the process changes.
struct Editor {
  /// The number of editors.
  static let count = 3

  let app: App
  let list: ShownList
  var random: SplitMix64
  let index: Int
  /// The number of the next change; each change has another one.
  var next: Int

  /// Makes random changes, one after the other.
  mutating func run() async {
    while !Task.isCancelled {
      let number = next
      next += Self.count
      switch Int.random(in: 0..<10, using: &random) {
      case 0: await perform(.create(Issue(id: "e\(number)", title: "new")))
      case 1...3: if let issue = pick() { await perform(.rename(issue.id, title: "title-\(number)")) }
      case 4...5:
        if let issue = pick() {
          await perform(.setState(issue.id, issue.state == .open ? .closed : .open, reason: "state-\(number)"))
        }
      case 6: if let issue = pick(where: { $0.id.hasPrefix("e") }) { await perform(.delete(issue.id)) }
      case 7...8:
        if let issue = pick(where: { $0.number != nil }) {
          await perform(.comment(IssueComment(id: "comment-\(number)", text: "text")), on: issue.id)
        }
      default: if let issue = pick(where: { $0.number != nil }) { await describe(issue.id, "body-\(number)") }
      }
      // Fails if another editor decides at the same time.
      await app.attempt { _ = try await app.decide() }
      // The pace of a user.
      let pause = Duration.milliseconds(Int.random(in: 0...10, using: &random))
      try? await Task.sleep(for: pause)
    }
  }

  /// Returns one of the newest issues of this editor.
  private mutating func pick(where isSuitable: (Issue) -> Bool = { _ in true }) -> Issue? {
    list.issues.filter { Int($0.id.dropFirst()).map { $0 % Self.count } == index && isSuitable($0) }
      .prefix(6).randomElement(using: &random)
  }

  private func perform(_ mutation: IssuesSource.Mutation) async {
    await perform(mutation.mark, lane: mutation.issue) { () async throws(RepositoryError<TrackerError>) in
      try await app.issues.perform(mutation, on: App.project)
    }
  }

  private func perform(_ mutation: IssueDetailSource.Mutation, on issue: Issue.ID) async {
    await perform(mutation.mark, lane: "detail/\(issue)") { () async throws(RepositoryError<TrackerError>) in
      try await app.details.perform(mutation, on: issue)
    }
  }

  /// Replaces the description of the version that the user sees.
  private func describe(_ issue: Issue.ID, _ mark: String) async {
    guard await app.attempt({ try await app.details.refresh(issue) }) else { return }
    for await detail in app.details.values(of: issue) {
      await perform(.describe(mark, version: detail.version), on: issue)
      break
    }
  }

  private func perform(
    _ mark: String, lane: String, _ change: () async throws(RepositoryError<TrackerError>) -> MutationResult
  ) async {
    say(["begin", lane, mark])
    do throws(RepositoryError<TrackerError>) {
      switch try await change() {
      case .confirmed: say(["ack", mark, "confirmed"])
      case .queued: say(["ack", mark, "queued"])
      case .conflicted: say(["ack", mark, "conflicted"])
      }
    } catch {
      say(["failed", mark, "\(error)"])
    }
  }
}
