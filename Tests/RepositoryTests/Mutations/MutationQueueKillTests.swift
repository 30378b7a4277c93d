import DataStore
import Foundation
import Repository
import TestSupport
import Testing

/// What a queue has acknowledged is sent after its process was killed, under the key it had.
@Suite(.timeLimit(.minutes(5))) struct MutationQueueKillTests {
  private struct Line: Hashable {
    let what: String
    let number: Int
    let key: String

    init?(_ line: String) {
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 3, let number = Int(words[1]) else { return nil }
      (what, self.number, key) = (words[0], number, words[2])
    }
  }

  @Test func `Killed in the place of any call of the file system, nothing is lost and no key is new`() async throws {
    try await sideBySide(4) { number in
      for fatal in stride(from: number + 1, through: .max, by: 4) {
        if try await Self.dieAtCall(fatal) { break }
      }
    }
  }

  /// - Returns: Whether the process made fewer calls.
  private static func dieAtCall(_ fatal: Int) async throws -> Bool {
    let temporary = TemporaryFolder()
    var child = try ChildProcess("queue-mutations", temporary.url, ["\(fatal)"])
    var said = await child.allLines()
    let end = await child.end()
    // Its last word is not its last call: the watch may yet read of its own writes.
    if end == .success { #expect(said.last == "done") } else { #expect(end == .killed) }
    var relaunched = try ChildProcess("send-mutations", temporary.url)
    said += await relaunched.allLines()
    #expect(await relaunched.end() == .success)

    let lines = said.compactMap { Line($0) }
    let queued = lines.filter { $0.what == "queued" }
    let sent = lines.filter { $0.what == "sent" }
    // Of the last one, which was cancelled, more below.
    for line in queued where line.number != 4 {
      #expect(sent.contains { $0.number == line.number && $0.key == line.key } == true, "call \(fatal): \(said)")
    }
    if lines.contains(where: { $0.what == "cancelled" }) { #expect(!sent.map(\.number).contains(4)) }
    #expect(Set(sent.map(\.number)).count == Set(sent.map(\.key)).count, "call \(fatal): \(said)")
    var order: [Int] = []
    for line in sent where !order.contains(line.number) { order.append(line.number) }
    #expect(order == Array(1..<order.count + 1), "call \(fatal): \(said)")

    let left = MutationQueue<Int, Void, Never>(store: FileStore(folder: temporary.url), name: "mutations") { _, _ in
      .delivered(())
    }
    #expect(try await left.entries().map(\.mutation) == (order.contains(2) ? [2] : []), "call \(fatal): \(said)")
    return end == .success
  }
}
