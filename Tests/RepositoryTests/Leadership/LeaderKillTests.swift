import Foundation
import TestRounds
import TestSupport
import Testing

/// Several processes on one store perform numbered mutations, called steps, and the leader is killed repeatedly.
@Suite(.timeLimit(.minutes(15))) struct LeaderKillTests {
  private static let killCount = Rounds.count(3, full: 5)

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Only one of four processes sends at a time, and each step is applied once and in order despite killed leaders`(
    storeKind: SharedPlace.Kind
  ) async throws {
    let steppers = Steppers(place: try SharedPlace(storeKind))
    for _ in 0..<4 { try steppers.launch() }
    for round in 0..<Self.killCount {
      await steppers.waitForDurableSteps(count: 40)
      // The third of every five leaders is suspended first, so that the default number of leaders includes one. A
      // leader that uses a database server isn't suspended: a server ends the connection of a process that is suspended
      // in a transaction, so another process may become the leader. A suspended leader that uses files leads until it
      // is killed.
      let suspendsLeader = round % 5 == 2 && SharedPlace.Kind.inFileSystem.contains(storeKind)
      try await steppers.killLeader(suspendsItFirst: suspendsLeader)
      try steppers.launch()
    }
    await steppers.waitForDurableSteps(count: 40)
    try await steppers.finish()
  }
}

/// Processes that perform steps on one store, and the lines that they have printed.
///
/// Used by one task only.
private final class Steppers {
  private struct Child {
    let writer: String
    var process: ChildProcess
    var lines: [String] = []
  }

  private struct AppliedStep {
    let id: String
    let lane: String
    let writer: String
    let number: Int
    let sender: pid_t
  }

  private let place: SharedPlace
  private var children: [Child] = []
  private var launchCount = 0
  /// The durable steps of the processes that have ended, each as its writer, lane and number.
  private var durableSteps: Set<[String]> = []

  init(place: SharedPlace) {
    self.place = place
  }

  func launch() throws {
    launchCount += 1
    let writer = "w\(launchCount)"
    children.append(Child(writer: writer, process: try ChildProcess("take-steps", place.url, [writer])))
  }

  /// Reads lines of random children until they have reported the given number of durable steps.
  ///
  /// Fails the test if the output of a child ends before that.
  func waitForDurableSteps(count: Int) async {
    var durableCount = 0
    while durableCount < count {
      let index = children.indices.randomElement()!
      guard let line = await children[index].process.line() else {
        let (writer, lastLines) = (children[index].writer, children[index].lines.suffix(4))
        Issue.record("The output of \(writer) ended after \(durableCount) of \(count) durable steps: \(lastLines)")
        return
      }
      children[index].lines.append(line)
      if line.hasPrefix("durable ") { durableCount += 1 }
    }
  }

  /// Kills the running process that sent the last applied step; if there is none, kills the oldest process.
  ///
  /// If `suspendsItFirst` is true, suspends the process until two more durable steps of the others have been read; they
  /// may have been reported before. But the process is killed after 20 seconds in any case, because it may have been
  /// suspended while it held a lock of the store. The others then wait for that lock, for up to 60 seconds.
  func killLeader(suspendsItFirst: Bool) async throws {
    let lastSender = try appliedSteps().last?.sender
    let index = children.firstIndex { $0.process.identifier == lastSender } ?? 0
    var child = children.remove(at: index)
    if suspendsItFirst {
      child.process.stop()
      let killing = child.process.kill(after: .seconds(20))
      await waitForDurableSteps(count: 2)
      killing.cancel()
      _ = await killing.result
    }
    child.process.kill()
    child.lines += await child.process.allLines()
    #expect(await child.process.end() == .killed, "\(child.lines.suffix(4))")
    durableSteps.formUnion(Self.durableSteps(of: child))
  }

  /// Ends all processes, and compares their lines with the state of the server.
  func finish() async throws {
    for child in children { child.process.endInput() }
    for index in children.indices {
      children[index].lines += await children[index].process.allLines()
      #expect(await children[index].process.end() == .success, "\(children[index].lines.suffix(4))")
      durableSteps.formUnion(Self.durableSteps(of: children[index]))
      checkOutput(of: children[index])
    }
    let allSteps = try appliedSteps()
    #expect(Set(allSteps.map(\.id)).count == allSteps.count)
    for (laneAndWriter, steps) in Dictionary(grouping: allSteps, by: { [$0.lane, $0.writer] }) {
      #expect(steps.map(\.number) == Array(1...steps.count), "\(laneAndWriter)")
    }
    let applied = Set(allSteps.map { [$0.writer, $0.lane, "\($0.number)"] })
    #expect(durableSteps.subtracting(applied) == [])
  }

  /// Checks that a surviving process got a result for each of its steps, and finally showed the server's steps.
  private func checkOutput(of child: Child) {
    // The words of each line `ended LANE NUMBER RESULT`, which a process prints when `perform` has ended.
    let endedSteps = child.lines.filter { $0.hasPrefix("ended ") }.map { $0.split(separator: " ").map(String.init) }
    #expect(Set(endedSteps.map { [child.writer, $0[1], $0[2]] }) == Self.durableSteps(of: child), "\(child.writer)")
    #expect(Set(endedSteps.map { $0[3] }).isSubset(of: ["confirmed", "queued"]))
    // In each of the four lanes, the process has shown the steps that the server has.
    #expect(child.lines.suffix(4).sorted() == ["agrees 0", "agrees 1", "agrees 2", "agrees 3"], "\(child.writer)")
  }

  private static func durableSteps(of child: Child) -> Set<[String]> {
    Set(
      child.lines.filter { $0.hasPrefix("durable ") }.map { line in
        [child.writer] + line.split(separator: " ").dropFirst().map(String.init)
      })
  }

  /// Returns the steps in the server's file.
  ///
  /// Fails the test if the file has the line `overlap`, which the server adds when two processes send at the same time.
  private func appliedSteps() throws -> [AppliedStep] {
    let file = place.folder.url.appending(path: "server")
    guard FileManager.default.fileExists(atPath: file.path(percentEncoded: false)) else { return [] }
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      try #require(words.count == 5, "\(line)")
      return AppliedStep(
        id: words[0], lane: words[1], writer: words[2], number: try #require(Int(words[3])),
        sender: try #require(Int32(words[4])))
    }
  }
}
