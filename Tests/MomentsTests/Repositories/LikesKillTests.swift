import DataStore
import Foundation
import Moments
import TestRounds
import TestSupport
import Testing

/// A like whose outcome the process has printed reaches the server once, no matter when the process is killed.
///
/// The likes of one user arrive in order.
@Suite(.timeLimit(.minutes(15))) struct LikesKillTests {
  /// A like that must or may be in the server's file.
  private enum ExpectedLike {
    /// A like whose outcome the process printed, so it must be in the file.
    case acknowledged(number: Int, key: String)
    /// A like that may have been in flight when the process ended, so it may be in the file or not.
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
    private(set) var nextNumber = 1
    private var expectedLikes: [ExpectedLike] = []

    init() throws {
      folder = try TemporaryFolder.created()
    }

    /// Adds the likes that a process acknowledged before it ended, and the next one, which may have been in flight.
    mutating func addLikes(printed lines: [String]) throws {
      for line in lines {
        // A line has the number, the outcome and the key of a like.
        let words = line.split(separator: " ").map(String.init)
        try #require(
          words.count == 3 && Int(words[0]) == nextNumber, "the line after like \(nextNumber - 1) is \(line)")
        expectedLikes.append(.acknowledged(number: nextNumber, key: words[2]))
        nextNumber += 1
      }
      expectedLikes.append(.inFlight(number: nextNumber))
      nextNumber += 1
    }

    /// Returns the content of a like, as the server writes it to its file: the user, the moment, and `isLiked`.
    ///
    /// `TestChild` derives each like from its number in the same way.
    private static func content(ofLike number: Int) -> String {
      "\(number % 2) \(number / 2 % 3) \(number / 6 % 2 == 0)"
    }

    /// Delivers the remaining likes, and compares the server's file with the acknowledged likes.
    func deliverAndCheck() async throws {
      var child = try ChildProcess("deliver-likes", folder.url)
      let lines = await child.allLines()
      #expect(await child.end() == .success)
      let text = try String(contentsOf: folder.url.appending(path: "server"), encoding: .utf8)
      let changes = text.split(separator: "\n").map { Change($0) }
      #expect(Set(changes.map(\.key)).count == changes.count)
      // The stored timeline and the observed one agree with the server.
      let userIDs = Set(changes.map { $0.content.prefix(1) }).sorted()
      let agreements = userIDs.flatMap { userID in Array(repeating: "\(userID) agrees", count: 2) }
      #expect(lines == ["0 likes left"] + agreements)
      // Only the likes of one user have an order. Those of user 0 have even numbers, and those of user 1 odd ones.
      for userID in 0...1 {
        var remainingChanges = changes.filter { $0.content.hasPrefix("\(userID) ") }[...]
        for like in expectedLikes {
          switch like {
          case .acknowledged(let number, let key) where number % 2 == userID:
            let nextChange = remainingChanges.popFirst()
            let change = try #require(nextChange, "like \(number) is lost")
            try #require(
              change.key == key && change.content == Self.content(ofLike: number),
              "another change in place of like \(number)")
          case .inFlight(let number) where number % 2 == userID:
            guard let change = remainingChanges.first, change.content == Self.content(ofLike: number) else { continue }
            // The change may be a later, acknowledged like with the same content.
            if !isAcknowledged(change.key) { remainingChanges.removeFirst() }
          default: continue
          }
        }
        #expect(remainingChanges.isEmpty, "changes under unknown keys")
      }
      try checkFiles()
    }

    private func isAcknowledged(_ key: String) -> Bool {
      expectedLikes.contains { if case .acknowledged(_, key) = $0 { true } else { false } }
    }

    /// Checks that no process found a partially written file, and that the queue is empty.
    private func checkFiles() throws {
      let storePath = folder.url.appending(path: "store").path()
      guard FileManager.default.fileExists(atPath: storePath) else { return }
      let files = try FileManager.default.contentsOfDirectory(atPath: storePath)
      #expect(files.filter { $0.contains("corrupt") } == [])
      let queuePrefix = try StoreKeyName("moments-details.mutations").encoded() + "."
      #expect(files.filter { $0.hasPrefix(queuePrefix) } == [])
    }
  }

  @Test func `No acknowledged like is lost, repeated or reordered if a process is killed at any instant`()
    async throws
  {
    let killCount = Rounds.count(8, full: 100)
    // Four tasks take ranges of 25 seeds in turn. The processes of each range use one folder.
    try await sideBySide(4) { number in
      for firstSeed in stride(from: number * 25, to: killCount, by: 100) {
        try await Self.killProcesses(seeds: firstSeed..<min(firstSeed + 25, killCount))
      }
    }
  }

  /// Starts and kills processes on one folder, one after another, and checks their likes.
  ///
  /// - Parameter seeds: For each process, the seed of its server's random faults. It doesn't determine when the process
  ///   is killed.
  private static func killProcesses(seeds: Range<Int>) async throws {
    var history = try History()
    for seed in seeds {
      var child = try ChildProcess("like", history.folder.url, ["\(history.nextNumber)", "\(seed)"])
      var lines: [String] = []
      for _ in 0..<Int.random(in: 0...8) {
        if let line = await child.line() { lines.append(line) }
      }
      child.kill()
      lines += await child.allLines()
      #expect(await child.end() == .killed)
      try history.addLikes(printed: lines)
    }
    try await history.deliverAndCheck()
  }

  @Test func `No acknowledged like is lost or repeated if a process is killed at any file system call`() async throws {
    let step = Rounds.step(10)
    let firstCall = Int.random(in: 1...step)
    try await sideBySide(4) { number in
      for fatalCall in stride(from: firstCall + number * step, through: .max, by: 4 * step) {
        if try await Self.bothProcessesSurvive(fatalCall: fatalCall) { break }
      }
    }
  }

  /// Runs two processes in turn, each of which is killed at its file system call number `fatalCall`, and checks the
  /// likes.
  ///
  /// - Returns: Whether both processes made fewer calls, and so ended by themselves.
  private static func bothProcessesSurvive(fatalCall: Int) async throws -> Bool {
    var history = try History()
    var bothSurvive = true
    // The second process also handles the files that the first one left.
    for _ in 1...2 {
      // After the fatal call come the numbers of the first and the last like, which are equal: each process makes one.
      let arguments = ["\(fatalCall)", "\(history.nextNumber)", "\(history.nextNumber)"]
      var child = try ChildProcess("like-dying-at-call", history.folder.url, arguments)
      let lines = await child.allLines()
      let end = await child.end()
      if end == .success {
        #expect(lines.count == 1)
      } else {
        #expect(end == .killed)
        bothSurvive = false
      }
      try history.addLikes(printed: lines)
    }
    try await history.deliverAndCheck()
    return bothSurvive
  }
}
