import DataStore
import Foundation
import TestSupport
import Testing

/// A change that a store has acknowledged is there after its process was killed, and no change is made in part.
///
/// The child numbers its commits, and what a commit does follows from its number. So after a kill the stored values are
/// those after the last acknowledged commit, or after the one that was in flight.
@Suite(.timeLimit(.minutes(15))) struct KillTests {
  private let temporary = TemporaryFolder()

  @Test(arguments: DurableStore.allCases)
  func `Killed at any instant, every acknowledged change is there`(kind: DurableStore) async throws {
    let place = kind.place(in: temporary)
    var progress = CommitProgress(.mixed)
    for round in 1...killRounds {
      var child = try ChildProcess("commit", place, ["mixed", "\(progress.number + 1)", "1000000"])
      var lines: [String] = []
      for _ in 0..<Int.random(in: 0...8) {
        if let line = await child.line() { lines.append(line) }
      }
      child.kill()
      lines += await child.allLines()
      #expect(await child.end() == .killed)
      let acknowledged = try #require(lines.isEmpty ? progress.number : Int(lines.last!), "round \(round): \(lines)")
      try await progress.find(acknowledged: acknowledged) { kind.openPatiently(at: place) }
    }
    try expectNoTemporaryFiles(of: kind)
  }

  @Test(arguments: DurableStore.allCases, NumberedCommits.allCases)
  func `Killed in place of any call of the file system, a change is made whole or not at all`(
    kind: DurableStore, commits: NumberedCommits
  ) async throws {
    let place = kind.place(in: temporary)
    var progress = CommitProgress(commits)
    for fatal in 1... {
      let first = progress.number + 1
      // So many that each kind of change is among them, and that the first ones come at any position.
      let last = progress.number + (commits == .mixed ? 6 : 2)
      var child = try ChildProcess("die-at-call", place, ["\(fatal)", commits.rawValue, "\(first)", "\(last)"])
      let lines = await child.allLines()
      let end = await child.end()
      #expect(end == .success || end == .killed, "call \(fatal): \(lines)")
      let acknowledged = try #require(lines.isEmpty ? progress.number : Int(lines.last!), "call \(fatal): \(lines)")
      if end == .success { #expect(acknowledged == last) }
      try await progress.find(acknowledged: acknowledged) { kind.openPatiently(at: place) }
      // Readers leave a database that was made in part to the next writer.
      if kind == .files || end == .success { try expectNoTemporaryFiles(of: kind) }
      if end == .success { break }
    }
  }

  @Test func `The files that 200 killed processes staged are removed, and those of a live one stay`() async throws {
    let folder = temporary.url
    var live = try ChildProcess("stage", folder)
    #expect(await live.line() == "staged")
    let staged = Set(try temporary.contents)
    #expect(staged.count == 5)
    for _ in 1...25 {
      var children: [ChildProcess] = []
      for _ in 1...8 { children.append(try ChildProcess("stage", folder)) }
      for index in children.indices { #expect(await children[index].line() == "staged") }
      for child in children { child.kill() }
      for child in children { #expect(await child.end() == .killed) }
      let all = try temporary.contents
      #expect(all.count == 45, "\(all.sorted())")
      _ = try await NumberedCommits.load(from: FileStore(folder: folder))
      let kept = try Set(temporary.contents)
      #expect(kept == staged)
    }
    live.endInput()
    #expect(await live.allLines() == ["1"])
    #expect(await live.end() == .success)
    var progress = CommitProgress(.batches)
    try await progress.find(acknowledged: 1) { FileStore(folder: folder) }
    #expect(progress.number == 1)
    try expectNoTemporaryFiles(of: .files)
  }

  private func expectNoTemporaryFiles(of kind: DurableStore) throws {
    guard FileManager.default.fileExists(atPath: temporary.url.path(percentEncoded: false)) else { return }
    #expect(try temporary.contents.filter { !kind.keepsFile(named: $0) } == [])
  }
}

/// How many times processes are killed: `MOMENTS_KILL_ROUNDS` in the environment.
let killRounds = ProcessInfo.processInfo.environment["MOMENTS_KILL_ROUNDS"].flatMap { Int($0) } ?? 25

extension TemporaryFolder {
  /// The names of all files, in no order.
  var contents: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: url.path(percentEncoded: false)) }
  }
}
