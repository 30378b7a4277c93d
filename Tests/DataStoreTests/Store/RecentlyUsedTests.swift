import Foundation
import Multicast
import MulticastTesting
import Testing

@testable import DataStore

@Suite struct RecentlyUsedTests {
  private func key(_ number: Int) -> StoreKeyName { StoreKeyName("a", id: "\(number)") }

  @Test func `Within the limit nothing is released`() {
    var recentlyUsed = RecentlyUsed(limit: 10)
    for number in 0..<5 { #expect(recentlyUsed.use(key(number), size: 2) == []) }
    for number in 0..<5 { #expect(recentlyUsed.use(key(number), size: 2) == []) }
  }

  @Test func `Beyond the limit, the least recently used values are released, down to half the limit`() {
    var recentlyUsed = RecentlyUsed(limit: 10)
    for number in 0..<5 { _ = recentlyUsed.use(key(number), size: 2) }
    _ = recentlyUsed.use(key(0), size: 2)
    #expect(recentlyUsed.use(key(5), size: 2) == [key(1), key(2), key(3), key(4)])
    #expect(recentlyUsed.use(key(6), size: 6) == [])
  }

  @Test func `The most recently used value is kept regardless of its size`() {
    var recentlyUsed = RecentlyUsed(limit: 10)
    #expect(recentlyUsed.use(key(0), size: 100) == [])
    #expect(recentlyUsed.use(key(1), size: 100) == [key(0)])
    // The new size of a value replaces its old one, so the last two values are within the limit.
    #expect(recentlyUsed.use(key(1), size: 1) == [])
    #expect(recentlyUsed.use(key(2), size: 9) == [])
  }

  @Test func `A removed value does not count toward the limit`() {
    var recentlyUsed = RecentlyUsed(limit: 10)
    _ = recentlyUsed.use(key(0), size: 8)
    recentlyUsed.remove(key(0))
    #expect(recentlyUsed.use(key(1), size: 8) == [])
  }

  @Test(arguments: QuarantiningBackend.Outcome.allCases)
  private func `A value whose quarantine was attempted does not count toward the limit, whatever the outcome`(
    outcome: QuarantiningBackend.Outcome
  ) throws {
    let contents = StoreContents(
      backend: QuarantiningBackend(outcome: outcome), eventRelay: MulticastRelay(replay: 1, buffering: .unbounded),
      now: { Date() }, memoryLimit: 10)
    let slots = try (0..<3).map { try contents.topics.open(StoreKey<Int>("a", id: "\($0)")) }
    func recordRead(of number: Int) {
      let header = Envelope.Header(schema: 1, savedAt: Date(), tag: StoreTag(), partIDs: nil)
      let edition = Edition(fingerprint: Fingerprint(Data([UInt8(number)])), header: header)
      let content = StoredContent(value: number, counts: nil, ownSize: 4, partSizes: [])
      contents.reconcile(.value(edition, content), slots[number])
    }
    recordRead(of: 0)
    recordRead(of: 1)
    do {
      #expect(try contents.quarantine(Data(), of: slots[1], reason: "") == "a place")
      #expect(outcome == .valueQuarantined)
    } catch {
      #expect(error == outcome.error)
    }
    recordRead(of: 0)
    recordRead(of: 2)
    // If value 1 still counted, value 0 would be released too.
    #expect(slots.map { $0.topic.holdsContent(of: $0.id) } == [true, false, true])
  }
}

/// An empty backend whose quarantines all have the same outcome.
private struct QuarantiningBackend: StoreBackend {
  enum Outcome: CaseIterable {
    case valueQuarantined
    case failed
    case storeQuarantined

    var error: StoreError? {
      switch self {
      case .valueQuarantined: nil
      case .failed: .writeFailed(SystemError(code: 5, operation: "rename", path: "a"))
      case .storeQuarantined: .corruptStore(movedTo: "a place", reason: "a reason")
      }
    }
  }

  let outcome: Outcome

  func read(_ name: String) -> Data? { nil }

  func names() -> [String] { [] }

  mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    try decide(&self) != .abandon
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    if let error = outcome.error { throw error }
    return "a place"
  }
}
