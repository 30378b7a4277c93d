import Foundation
import TestRounds
import TestSupport
import Testing

/// A process is killed at a file system call of a sign-out, and the next process completes the sign-out if it began.
@Suite(.timeLimit(.minutes(15))) struct SignOutKillTests {
  @Test(arguments: SharedPlace.Kind.inFileSystem)
  func `A sign-out whose process is killed at any file system call hasn't begun, or the next process completes it`(
    kind: SharedPlace.Kind
  ) async throws {
    let step = Rounds.step(24)
    let firstCall = Int.random(in: 1...step)
    try await sideBySide(2) { number in
      for fatalCall in stride(from: firstCall + number * step, through: .max, by: 2 * step) {
        if try await Self.signOutEnds(beforeCall: fatalCall, kind) { break }
      }
    }
  }

  /// Runs a sign-out whose process is killed at the call with the given number.
  ///
  /// - Returns: Whether the process made fewer calls, and so ended by itself.
  private static func signOutEnds(beforeCall fatalCall: Int, _ kind: SharedPlace.Kind) async throws -> Bool {
    let place = try SharedPlace(kind)
    defer { extendLifetime(place) }
    #expect(try await run("keep-words", in: place.url) == ["kept"])

    var child = try ChildProcess("sign-out-dying-at-call", place.url, ["\(fatalCall)"])
    let isDone = await child.allLines() == ["done"]
    let termination = await child.end()
    #expect(termination == .killed || (isDone && termination == .success), "call \(fatalCall)")

    let report = try await run("finish-sign-out", in: place.url)
    let marysLine = "words/mary/mary's/mary's 1/mary's 2"
    if report.first == "phase signedOut" {
      #expect(report == ["phase signedOut", "words/jake", marysLine], "call \(fatalCall)")
      #expect(try place.folder.files(mentioning: "jake") == [], "call \(fatalCall)")
    } else {
      // The report names no phase because no user has a record, so the sign-out hasn't begun.
      #expect(!isDone, "call \(fatalCall)")
      #expect(report == ["phase", "words/jake/jake's/jake's 1/jake's 2", marysLine], "call \(fatalCall)")
    }
    return termination == .success
  }

  private static func run(_ command: String, in place: URL) async throws -> [String] {
    var child = try ChildProcess(command, place)
    let lines = await child.allLines()
    #expect(await child.end() == .success, "\(command): \(lines)")
    return lines
  }
}
