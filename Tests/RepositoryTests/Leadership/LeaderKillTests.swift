import Foundation
import TestSupport
import Testing

/// Several processes on one store perform numbered mutations, called steps, and the leader is killed repeatedly.
@Suite(.timeLimit(.minutes(15))) struct LeaderKillTests {
  /// The number of leaders to kill: a twentieth of `MOMENTS_KILL_ROUNDS` in the environment, or 3 without it.
  private static let kills =
    ProcessInfo.processInfo.environment["MOMENTS_KILL_ROUNDS"].flatMap { Int($0) }.map { $0 / 20 } ?? 3

  @Test(arguments: SharedPlace.Kind.allCases)
  func `One of four processes sends at a time, and steps are applied once and in order even if the leader is killed`(
    store: SharedPlace.Kind
  ) async throws {
    let steppers = Steppers(place: try SharedPlace(store))
    for _ in 0..<4 { try steppers.launch() }
    for round in 0..<Self.kills {
      await steppers.run(forSteps: 40)
      // A suspended leader that uses files leads until it is killed. A database server ends the connection of a process
      // that is suspended in a transaction, so another process may become the leader.
      try await steppers.killLeader(stopsFirst: round % 5 == 4 && SharedPlace.Kind.inFileSystem.contains(store))
      try steppers.launch()
    }
    await steppers.run(forSteps: 40)
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

  private struct Line {
    let id: String
    let lane: String
    let writer: String
    let number: Int
    let process: pid_t
  }

  private let place: SharedPlace
  private var children: [Child] = []
  private var launchCount = 0
  private var durable: Set<[String]> = []

  init(place: SharedPlace) {
    self.place = place
  }

  func launch() throws {
    launchCount += 1
    let writer = "w\(launchCount)"
    children.append(Child(writer: writer, process: try ChildProcess("take-steps", place.url, [writer])))
  }

  /// Reads lines of random children until they have reported the given number of durable steps.
  func run(forSteps count: Int) async {
    var steps = 0
    while steps < count {
      let index = children.indices.randomElement()!
      guard let line = await children[index].process.line() else { return }
      children[index].lines.append(line)
      if line.hasPrefix("durable ") { steps += 1 }
    }
  }

  /// Kills the process that sent last, after suspending it if `stopsFirst` is true.
  func killLeader(stopsFirst: Bool) async throws {
    let leader = try serverLines().last?.process
    let index = children.firstIndex { $0.process.identifier == leader } ?? 0
    var child = children.remove(at: index)
    if stopsFirst {
      child.process.stop()
      await run(forSteps: 2)
    }
    child.process.kill()
    child.lines += await child.process.allLines()
    #expect(await child.process.end() == .killed, "\(child.lines.suffix(4))")
    durable.formUnion(Self.durable(child))
  }

  /// Ends all processes, and compares their lines with the state of the server.
  func finish() async throws {
    for child in children { child.process.endInput() }
    for index in children.indices {
      children[index].lines += await children[index].process.allLines()
      #expect(await children[index].process.end() == .success, "\(children[index].lines.suffix(4))")
      durable.formUnion(Self.durable(children[index]))
      checkAnswers(children[index])
    }
    let lines = try serverLines()
    #expect(Set(lines.map(\.id)).count == lines.count)
    for (lane, lines) in Dictionary(grouping: lines, by: { [$0.lane, $0.writer] }) {
      #expect(lines.map(\.number) == Array(1...lines.count), "\(lane)")
    }
    let made = Set(lines.map { [$0.writer, $0.lane, "\($0.number)"] })
    #expect(durable.subtracting(made) == [])
  }

  /// Checks that a surviving process got a result for each of its steps, and finally showed the server's steps.
  private func checkAnswers(_ child: Child) {
    let ended = child.lines.filter { $0.hasPrefix("ended ") }.map { $0.split(separator: " ").map(String.init) }
    #expect(Set(ended.map { [child.writer, $0[1], $0[2]] }) == Self.durable(child), "\(child.writer)")
    #expect(Set(ended.map { $0[3] }).isSubset(of: ["confirmed", "queued"]))
    #expect(child.lines.suffix(4).sorted() == ["agrees 0", "agrees 1", "agrees 2", "agrees 3"], "\(child.writer)")
  }

  private static func durable(_ child: Child) -> Set<[String]> {
    Set(
      child.lines.filter { $0.hasPrefix("durable ") }.map { line in
        [child.writer] + line.split(separator: " ").dropFirst().map(String.init)
      })
  }

  /// Returns the steps in the server's file.
  ///
  /// Fails the test if the file has the line `overlap`, which the server adds when two processes send at the same time.
  private func serverLines() throws -> [Line] {
    let file = place.folder.url.appending(path: "server")
    guard FileManager.default.fileExists(atPath: file.path(percentEncoded: false)) else { return [] }
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      try #require(words.count == 5, "\(line)")
      return Line(
        id: words[0], lane: words[1], writer: words[2], number: try #require(Int(words[3])),
        process: try #require(Int32(words[4])))
    }
  }
}
