import Foundation
import TestSupport
import Testing

/// A process is killed at a file system call of a sign-out, and the next process completes the sign-out if it began.
@Suite(.timeLimit(.minutes(15))) struct SignOutKillTests {
  private static let rounds = ProcessInfo.processInfo.environment["MOMENTS_KILL_ROUNDS"].flatMap { Int($0) } ?? 24

  @Test(arguments: SharedPlace.Kind.inFileSystem)
  func `A sign-out whose process is killed at any file system call hasn't begun, or the next process completes it`(
    store: SharedPlace.Kind
  ) async throws {
    // If `MOMENTS_KILL_ROUNDS` is at least 100, a process is killed at every call, and otherwise at every eighth.
    let step = Self.rounds < 100 ? 8 : 1
    let first = Int.random(in: 1...step)
    try await sideBySide(2) { number in
      for fatal in stride(from: first + number * step, through: .max, by: 2 * step) {
        if try await Self.dieAtCall(fatal, store) { break }
      }
    }
  }

  /// Runs a sign-out whose process is killed at the call with the given number.
  ///
  /// - Returns: Whether the process made fewer calls, and so ended by itself.
  private static func dieAtCall(_ fatal: Int, _ store: SharedPlace.Kind) async throws -> Bool {
    let place = try SharedPlace(store)
    defer { extendLifetime(place) }
    #expect(try await lines(of: "keep-words", place.url) == ["kept"])

    var child = try ChildProcess("sign-out-dying-at-call", place.url, ["\(fatal)"])
    let isDone = await child.allLines() == ["done"]
    let end = await child.end()
    #expect(end == .killed || (isDone && end == .success), "call \(fatal)")

    let found = try await lines(of: "finish-sign-out", place.url)
    let mary = "words/mary/mary's/mary's 1/mary's 2"
    if found.first == "phase signedOut" {
      #expect(found == ["phase signedOut", "words/jake", mary], "call \(fatal)")
      #expect(try mentions(of: "jake", in: place.folder.url) == [], "call \(fatal)")
    } else {
      #expect(!isDone, "call \(fatal)")
      #expect(found == ["phase", "words/jake/jake's/jake's 1/jake's 2", mary], "call \(fatal)")
    }
    return end == .success
  }

  private static func lines(of command: String, _ place: URL) async throws -> [String] {
    var child = try ChildProcess(command, place)
    let lines = await child.allLines()
    #expect(await child.end() == .success, "\(command): \(lines)")
    return lines
  }

  /// The files whose names or bytes contain a text.
  private static func mentions(of text: String, in folder: URL) throws -> [String] {
    let names = try #require(FileManager.default.subpaths(atPath: folder.path(percentEncoded: false)))
    return try names.filter { name in
      if name.contains(text) { return true }
      let file = folder.appending(path: name)
      guard try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile ?? false else { return false }
      return try Data(contentsOf: file).range(of: Data(text.utf8)) != nil
    }
  }
}
