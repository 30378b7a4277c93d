import DataStore
import Foundation
import Moments
import TestSupport
import Testing

/// An acknowledged like reaches the server once and in order, no matter when the process is killed.
@Suite(.timeLimit(.minutes(15))) struct LikesKillTests {
  /// What the test knows about a like that a process made.
  private enum Expected {
    case acknowledged(number: Int, key: String)
    /// A like that wasn't reported before the process was killed, so it may be stored or not.
    case inFlight(number: Int)
  }

  /// A change in the server's file.
  private struct Change: Equatable {
    let key: String
    let content: String

    init(_ line: Substring) {
      let end = line.firstIndex(of: " ") ?? line.endIndex
      key = String(line[..<end])
      content = String(line[end...].dropFirst())
    }
  }

  /// A folder with a store and a server's file, and the likes of the processes that have used it one after another.
  private struct History {
    let folder: TemporaryFolder
    private(set) var next = 1
    private var expected: [Expected] = []

    init() throws {
      folder = try TemporaryFolder.existing()
    }

    /// Adds the likes that a process acknowledged before it was killed, and the one in flight.
    mutating func add(_ lines: [String]) throws {
      for line in lines {
        let words = line.split(separator: " ").map(String.init)
        try #require(words.count == 3 && Int(words[0]) == next, "after \(next - 1) came \(line)")
        expected.append(.acknowledged(number: next, key: words[2]))
        next += 1
      }
      expected.append(.inFlight(number: next))
      next += 1
    }

    /// Returns the content of a like, as the server writes it to its file.
    private static func content(_ number: Int) -> String {
      "\(number % 2) \(number / 2 % 3) \(number / 6 % 2 == 0)"
    }

    /// Delivers the remaining likes, and compares the server's file with the acknowledged likes.
    func finish() async throws {
      var child = try ChildProcess("deliver-likes", folder.url)
      let lines = await child.allLines()
      #expect(await child.end() == .success)
      let text = try String(contentsOf: folder.url.appending(path: "server"), encoding: .utf8)
      let changes = text.split(separator: "\n").map { Change($0) }
      #expect(Set(changes.map(\.key)).count == changes.count)
      // The stored timeline and the observed one agree with the server.
      let users = Set(changes.map { $0.content.prefix(1) }).sorted()
      #expect(lines == ["0 likes left"] + users.flatMap { ["\($0) agrees", "\($0) agrees"] })
      for userID in 0...1 {
        var rest = changes.filter { $0.content.hasPrefix("\(userID) ") }[...]
        for expected in expected {
          switch expected {
          case .acknowledged(let number, let key) where number % 2 == userID:
            let first = rest.popFirst()
            let change = try #require(first, "like \(number) is lost")
            try #require(
              change.key == key && change.content == Self.content(number), "another change in place of like \(number)")
          case .inFlight(let number) where number % 2 == userID:
            guard let change = rest.first, change.content == Self.content(number) else { continue }
            // The change may be a later, acknowledged like with the same content.
            if !isAcknowledged(change.key) { rest.removeFirst() }
          default: continue
          }
        }
        #expect(rest.isEmpty, "changes under unknown keys")
      }
      try checkFiles()
    }

    private func isAcknowledged(_ wanted: String) -> Bool {
      expected.contains { if case .acknowledged(_, wanted) = $0 { true } else { false } }
    }

    /// Checks that no process found a partially written file, and that the queue is empty.
    private func checkFiles() throws {
      let store = folder.url.appending(path: "store").path()
      guard FileManager.default.fileExists(atPath: store) else { return }
      let files = try FileManager.default.contentsOfDirectory(atPath: store)
      #expect(files.filter { $0.contains("corrupt") } == [])
      #expect(files.filter { $0.hasPrefix("moments-details.mutations") } == [])
    }
  }

  @Test func `No acknowledged like is lost, repeated or reordered if a process is killed at any instant`()
    async throws
  {
    let kills = ProcessInfo.processInfo.environment["MOMENTS_KILL_ROUNDS"].flatMap { Int($0) } ?? 25
    try await sideBySide(4) { number in
      for first in stride(from: number * 25, to: kills, by: 100) {
        try await Self.kill(first..<min(first + 25, kills))
      }
    }
  }

  /// Kills processes that use one folder, one after another.
  private static func kill(_ seeds: Range<Int>) async throws {
    var history = try History()
    for seed in seeds {
      var child = try ChildProcess("like", history.folder.url, ["\(history.next)", "\(seed)"])
      var lines: [String] = []
      for _ in 0..<Int.random(in: 0...8) {
        if let line = await child.line() { lines.append(line) }
      }
      child.kill()
      lines += await child.allLines()
      #expect(await child.end() == .killed)
      try history.add(lines)
    }
    try await history.finish()
  }

  @Test func `No acknowledged like is lost or repeated if a process is killed at any file system call`() async throws {
    try await sideBySide(4) { number in
      for fatal in stride(from: number + 1, through: .max, by: 4) {
        if try await Self.dieAtCall(fatal) { break }
      }
    }
  }

  /// Runs two processes, one after the other, each of which is killed at its file system call number `fatal`.
  ///
  /// - Returns: Whether the last process made fewer calls, and so ended by itself.
  private static func dieAtCall(_ fatal: Int) async throws -> Bool {
    var history = try History()
    var hasSurvived = false
    // The second process also handles the files that the first one left.
    for _ in 1...2 {
      let words = ["\(fatal)", "\(history.next)", "\(history.next)"]
      var child = try ChildProcess("like-dying-at-call", history.folder.url, words)
      let lines = await child.allLines()
      let end = await child.end()
      hasSurvived = end == .success
      if hasSurvived { #expect(lines.count == 1) } else { #expect(end == .killed) }
      try history.add(lines)
    }
    try await history.finish()
    return hasSurvived
  }
}
