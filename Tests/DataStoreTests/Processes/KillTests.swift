import DataStore
import Foundation
import TestRounds
import TestSupport
import Testing

/// Acknowledged changes survive a kill of the process, and no change is made in part.
///
/// A child process makes numbered commits, and the number of a commit determines its changes. So after a kill, the
/// stored values must be those after the last acknowledged commit, or after the one in flight.
@Suite(.timeLimit(.minutes(15))) struct KillTests {
  private let temporary = TemporaryFolder()

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Every acknowledged change survives a kill at any instant`(kind: SharedPlace.Kind) async throws {
    let place = try SharedPlace(kind)
    var progress = CommitProgress(.mixed)
    for round in 1...killRoundCount {
      // The child is killed long before its last commit.
      var child = try ChildProcess("commit", place.url, ["mixed", "\(progress.number + 1)", "1000000"])
      var lines: [String] = []
      for _ in 0..<Int.random(in: 0...8) {
        if let line = await child.line() { lines.append(line) }
      }
      child.kill()
      lines += await child.allLines()
      #expect(await child.end() == .killed)
      try place.waitForEffects(of: child)
      let acknowledged = try #require(lines.isEmpty ? progress.number : Int(lines.last!), "round \(round): \(lines)")
      try await progress.catchUp(acknowledged: acknowledged) { try place.open() }
    }
    #expect(try place.temporaryFiles == [])
  }

  @Test(arguments: DurableStore.allCases, NumberedCommits.allCases)
  func `A kill right before any call of the file system leaves all of a change or none`(
    kind: DurableStore, commits: NumberedCommits
  ) async throws {
    let place = kind.place(in: temporary)
    var progress = CommitProgress(commits)
    let step = Rounds.step(12)
    for fatalCall in stride(from: Int.random(in: 1...step), through: .max, by: step) {
      let first = progress.number + 1
      // The five mixed commits after the first include all five kinds of commits, so each kind is also made by a store
      // that has made a commit before.
      let last = progress.number + (commits == .mixed ? 6 : 2)
      var child = try ChildProcess("die-at-call", place, ["\(fatalCall)", commits.rawValue, "\(first)", "\(last)"])
      let lines = await child.allLines()
      let end = await child.end()
      #expect(end == .success || end == .killed, "call \(fatalCall): \(lines)")
      let acknowledged = try #require(
        lines.isEmpty ? progress.number : Int(lines.last!), "call \(fatalCall): \(lines)")
      if end == .success { #expect(acknowledged == last) }
      try await progress.catchUp(acknowledged: acknowledged) { kind.openPatiently(at: place) }
      // `catchUp` only reads, so it leaves a partially created database to the next store that writes.
      if kind == .files || end == .success { try expectNoTemporaryFiles(of: kind) }
      if end == .success { break }
    }
  }

  @Test func `Staged files of many killed processes are removed, and those of a running process stay`() async throws {
    let folder = temporary.url
    var runningChild = try ChildProcess("stage", folder)
    #expect(await runningChild.line() == "staged")
    let filesOfRunningChild = Set(try temporary.fileNames)
    #expect(filesOfRunningChild.count == 5)
    for _ in 1...Rounds.count(3, full: 25) {
      var children: [ChildProcess] = []
      for _ in 1...8 { children.append(try ChildProcess("stage", folder)) }
      for index in children.indices { #expect(await children[index].line() == "staged") }
      for child in children { child.kill() }
      for child in children { #expect(await child.end() == .killed) }
      let all = try temporary.fileNames
      // Each of the eight killed processes and the running one has staged five files.
      #expect(all.count == 45, "\(all.sorted())")
      // The first read of a store removes the staged files of processes that have ended.
      _ = try await NumberedCommits.load(from: FileStore(folder: folder))
      let kept = try Set(temporary.fileNames)
      #expect(kept == filesOfRunningChild)
    }
    runningChild.endInput()
    #expect(await runningChild.allLines() == ["1"])
    #expect(await runningChild.end() == .success)
    var progress = CommitProgress(.batches)
    try await progress.catchUp(acknowledged: 1) { FileStore(folder: folder) }
    #expect(progress.number == 1)
    try expectNoTemporaryFiles(of: .files)
  }

  private func expectNoTemporaryFiles(of kind: DurableStore) throws {
    guard FileManager.default.fileExists(atPath: temporary.url.path(percentEncoded: false)) else { return }
    #expect(try temporary.fileNames.filter { !kind.keepsFile(named: $0) } == [])
  }
}

/// The number of rounds in which processes are killed.
let killRoundCount = Rounds.count(5, full: 100)

extension TemporaryFolder {
  /// The names of all files, in no particular order.
  var fileNames: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: url.path(percentEncoded: false)) }
  }
}
