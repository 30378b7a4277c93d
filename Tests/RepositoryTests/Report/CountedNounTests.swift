import DataStore
import Foundation
import Testing

@testable import Repository

@Suite struct CountedNounTests {
  private static let id = MutationID(rawValue: "k")

  @Test(arguments: [(0, "0 mutations"), (1, "1 mutation"), (2, "2 mutations")])
  func `A noun is in the singular only after 1`(count: Int, text: String) {
    #expect(counted(count, "mutation") == text)
  }

  /// Returns a report in which every count is `count`, including the number of mutations of each lane.
  private func makeReport(countOfEach count: Int) -> RepositoryReport {
    let time = Date(timeIntervalSince1970: 1_000)
    var key = RepositoryReport.KeyReport("a", pendingCount: count)
    (key.byteCount, key.observerCount) = (count, count)
    let keys = (0..<count).map { _ in key }
    var report = RepositoryReport(name: "notes", time: time, keys: keys)
    report.lanes = (0..<count).map { _ in
      .init(lane: "a", count: count, oldest: nil, failures: count, status: .waiting)
    }
    (report.undecidedCount, report.queueByteCount) = (count, count)
    report.stored = .init(count: count, byteCount: count)
    return report
  }

  @Test func `The description of a report has singular nouns after 1`() {
    #expect(
      makeReport(countOfEach: 1).description.split(separator: "\n") == [
        "notes: 1 key, 1 mutation in 1 lane (1 byte), 1 undecided",
        "  1 value stored, 1 byte",
        "  key a: 1 byte, 1 observer, 1 pending",
        "  lane a: 1 mutation, 1 failed attempt",
      ])
    #expect(
      makeReport(countOfEach: 2).description.split(separator: "\n") == [
        "notes: 2 keys, 4 mutations in 2 lanes (2 bytes), 2 undecided",
        "  2 values stored, 2 bytes",
        "  key a: 2 bytes, 2 observers, 2 pending",
        "  key a: 2 bytes, 2 observers, 2 pending",
        "  lane a: 2 mutations, 2 failed attempts",
        "  lane a: 2 mutations, 2 failed attempts",
      ])
  }

  @Test(arguments: [
    (RepositoryEvent.requestJoined(key: "0", callers: 1), "request 0 joined, 1 caller"),
    (.requestJoined(key: "0", callers: 2), "request 0 joined, 2 callers"),
    (.queueLength(waiting: 1, dead: 2), "1 mutation in the queue, 2 dead letters"),
    (.queueLength(waiting: 2, dead: 1), "2 mutations in the queue, 1 dead letter"),
    (
      .mutationRefused(id, .cutOff(attempts: 1)),
      "mutation k given up, because the process ended during the last attempt"
    ),
    (
      .mutationRefused(id, .cutOff(attempts: 2)),
      "mutation k given up, because the process ended during each of the last 2 attempts"
    ),
  ])
  func `The description of an event has singular nouns after 1`(event: RepositoryEvent, line: String) {
    #expect(event.description == line)
  }

  @Test func `The descriptions of a refusal and of a sign-out error have different wordings for 1 and 2`() {
    #expect(
      [1, 2].map { MutationRefusal.cutOff(attempts: $0).description } == [
        "The process ended during the last attempt to send it.",
        "The process ended during each of the last 2 attempts to send it.",
      ])
    #expect(
      [1, 2].map { SignOutError.unsent($0).description } == [
        "The server doesn't have 1 of the user's changes. Let it be sent, or sign out without it.",
        "The server doesn't have 2 of the user's changes. Let them be sent, or sign out without them.",
      ])
  }
}
