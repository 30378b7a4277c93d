import DataStore
import Foundation
import Testing

@testable import Repository

@Suite struct MutationLedgerTests {
  private typealias Ledger = MutationLedger<String, Int>

  private static func id(_ number: Int) -> MutationID { MutationID(rawValue: "\(number)") }

  private func makeEntry(_ number: Int, key: String = "a", madeAt: TimeInterval = 0) throws -> Ledger.Entry {
    Ledger.Entry(
      id: Self.id(number), key: key, lane: LaneID(userID: nil, orderingKey: key), mutation: number,
      record: try .sample(
        number, key: key, sequence: UInt64(number), madeAt: Date(timeIntervalSince1970: madeAt)))
  }

  @Test func `The list is sorted by sequence number, and each key has its own mutations`() throws {
    var ledger = Ledger()
    for number in [3, 1, 2] { ledger.add(try makeEntry(number, key: number == 2 ? "b" : "a")) }
    #expect(ledger.list(usersNeedingSignIn: []).map(\.mutation) == [1, 2, 3])
    #expect(ledger.liveMutations(of: "a").map(\.id) == [Self.id(1), Self.id(3)])
    #expect((ledger.count, ledger.liveCount, ledger.byteCount) == (3, 3, 3))
    ledger.remove(Self.id(1))
    #expect(ledger.list(usersNeedingSignIn: []).map(\.mutation) == [2, 3])
    #expect((ledger.count, ledger.liveCount, ledger.byteCount) == (2, 2, 2))
  }

  @Test func `A mutation with a verdict is no longer live but stays listed`() throws {
    var ledger = Ledger()
    ledger.add(try makeEntry(1))
    ledger.mark(Self.id(1))
    ledger.beginAttempt(Self.id(1))
    #expect(ledger.list(usersNeedingSignIn: []).map(\.standing) == [.inFlight])
    ledger.recordVerdict(.refused(reason: "no"), on: Self.id(1))
    #expect(ledger.list(usersNeedingSignIn: []).map(\.standing) == [.refused(reason: "no")])
    #expect(ledger.liveMutations(of: "a").isEmpty)
    #expect((ledger.count, ledger.liveCount) == (1, 0))
    #expect(ledger[Self.id(1)]?.record.isMarked == false)
  }

  @Test func `A mutation marked by another process is in flight, but one marked by this process is still waiting`()
    throws
  {
    var ledger = Ledger()
    ledger.add(try makeEntry(1))
    ledger.mark(Self.id(1))
    #expect(ledger.list(usersNeedingSignIn: []).map(\.standing) == [.waiting])
    var record = try makeEntry(1).record
    record.isMarked = true
    ledger.receive(record, of: Self.id(1), tag: StoreTag(), revision: 1)
    #expect(ledger.list(usersNeedingSignIn: []).map(\.standing) == [.inFlight])
    record.isMarked = false
    ledger.receive(record, of: Self.id(1), tag: StoreTag(), revision: 2)
    #expect(ledger.list(usersNeedingSignIn: []).map(\.standing) == [.waiting])
  }

  @Test func `All waiting mutations of a user who has to sign in are listed as needing a sign-in`() throws {
    struct UserKey: RepositoryKey {
      let storeID: String
      var userID: String? { storeID }
      init(storeID: String) { self.storeID = storeID }
    }
    var ledger = MutationLedger<UserKey, Int>()
    for (number, userID) in ["0", "1", "0"].enumerated() {
      ledger.add(
        .init(
          id: Self.id(number), key: UserKey(storeID: userID), lane: LaneID(userID: userID, orderingKey: userID),
          mutation: number, record: try .sample(number, key: userID, sequence: UInt64(number))))
    }
    ledger.beginAttempt(Self.id(2))
    #expect(ledger.list(usersNeedingSignIn: ["0"]).map(\.standing) == [.needsSignIn, .waiting, .inFlight])
  }

  @Test func `An attempt counts when its request begins, and its mark is removed when the attempt ends`() throws {
    var ledger = Ledger()
    ledger.add(try makeEntry(1))
    var currentRecord: Ledger.Record? { ledger[Self.id(1)]?.record }
    ledger.beginAttempt(Self.id(1))
    ledger.mark(Self.id(1))
    ledger.abandonAttempt(Self.id(1))
    #expect(currentRecord?.attempts == 0)
    #expect(currentRecord?.isMarked == false)
    ledger.beginAttempt(Self.id(1))
    ledger.mark(Self.id(1))
    // Only the request counts, not the beginning of the attempt or its mark.
    #expect(currentRecord?.attempts == 0)
    ledger.beginRequest(Self.id(1))
    #expect(currentRecord?.attempts == 1)
    #expect(currentRecord?.isMarked == true)
    ledger.recordFailure(of: Self.id(1), isOutcomeUnknown: true)
    #expect(currentRecord?.attempts == 1)
    #expect(currentRecord?.isMarked == false)
    #expect(currentRecord?.isOutcomeUnknown == true)
    // A later failure doesn't make an unknown outcome known.
    ledger.recordFailure(of: Self.id(1), isOutcomeUnknown: false)
    #expect(currentRecord?.isOutcomeUnknown == true)
  }

  @Test func `An interrupted attempt counts once, and a need to sign in resets the number of interrupted ones`() throws
  {
    var ledger = Ledger()
    var interruptedEntry = try makeEntry(1)
    (interruptedEntry.record.attempts, interruptedEntry.record.interruptedAttempts) = (3, 2)
    interruptedEntry.record.isMarked = true
    ledger.add(interruptedEntry)
    var currentRecord: Ledger.Record? { ledger[Self.id(1)]?.record }
    #expect(ledger.list(usersNeedingSignIn: []).map(\.standing) == [.inFlight])
    ledger.recordInterruption(of: Self.id(1), wasFirstInLane: true, mayBeCause: true, limit: 5)
    // The repository stops sending, and later starts again. The interrupted attempt counts once.
    ledger.recordInterruption(of: Self.id(1), wasFirstInLane: true, mayBeCause: true, limit: 5)
    #expect(ledger.list(usersNeedingSignIn: []).map(\.standing) == [.waiting])
    #expect(currentRecord?.attempts == 4)
    #expect(currentRecord?.interruptedAttempts == 3)
    #expect(currentRecord?.isOutcomeUnknown == true)
    // An attempt whose mark can't be stored, and so is removed before the attempt ends, doesn't count.
    ledger.beginAttempt(Self.id(1))
    ledger.mark(Self.id(1))
    ledger.unmark(Self.id(1))
    ledger.abandonAttempt(Self.id(1))
    #expect(currentRecord?.interruptedAttempts == 3)
    // Nor does an attempt whose mark is stored but whose request doesn't begin.
    ledger.beginAttempt(Self.id(1))
    ledger.mark(Self.id(1))
    ledger.abandonAttempt(Self.id(1))
    #expect(currentRecord?.interruptedAttempts == 3)
    #expect(currentRecord?.attempts == 4)
    ledger.beginAttempt(Self.id(1))
    ledger.mark(Self.id(1))
    ledger.beginRequest(Self.id(1))
    // An attempt after which the user has to sign in no longer counts.
    ledger.recordNeedForSignIn(of: Self.id(1))
    #expect(currentRecord?.interruptedAttempts == 0)
    #expect(currentRecord?.attempts == 4)
  }

  @Test
  func `An interruption that another mutation in flight may have caused doesn't count, but its outcome is unknown`()
    throws
  {
    var ledger = Ledger()
    var interruptedEntry = try makeEntry(1)
    (interruptedEntry.record.interruptedAttempts, interruptedEntry.record.isMarked) = (4, true)
    ledger.add(interruptedEntry)
    ledger.recordInterruption(of: Self.id(1), wasFirstInLane: true, mayBeCause: false, limit: 5)
    let record = try #require(ledger[Self.id(1)]?.record)
    #expect((record.interruptedAttempts, record.attempts, record.isOutcomeUnknown, record.isLive) == (4, 1, true, true))
  }

  @Test func `A mutation is refused when the number of interrupted attempts reaches the limit`() throws {
    var ledger = Ledger()
    for number in [1, 2] {
      var interruptedEntry = try makeEntry(number)
      (interruptedEntry.record.interruptedAttempts, interruptedEntry.record.isMarked) = (4, true)
      ledger.add(interruptedEntry)
    }
    ledger.recordInterruption(of: Self.id(1), wasFirstInLane: true, mayBeCause: true, limit: 5)
    // Only an attempt of the first mutation of a lane is counted. For the second mutation, the number is reset.
    ledger.recordInterruption(of: Self.id(2), wasFirstInLane: false, mayBeCause: true, limit: 5)
    #expect(
      ledger.list(usersNeedingSignIn: []).map(\.standing) == [
        .refused(reason: "The process ended during each of the last 5 attempts to send it."), .waiting,
      ])
    #expect(ledger[Self.id(2)]?.record.interruptedAttempts == 0)
    #expect(ledger.list(usersNeedingSignIn: []).map(\.attempts) == [1, 0])
  }

  @Test(arguments: [false, true])
  func `The end of an attempt keeps the mark and the count that another process has stored`(isFailure: Bool) throws {
    var ledger = Ledger()
    ledger.add(try makeEntry(1))
    ledger.beginAttempt(Self.id(1))
    ledger.mark(Self.id(1))
    var recordOfOtherProcess = try makeEntry(1).record
    (recordOfOtherProcess.attempts, recordOfOtherProcess.isMarked) = (3, true)
    ledger.receive(recordOfOtherProcess, of: Self.id(1), tag: StoreTag(), revision: 1)
    // The mark of this process can't be stored, because the other process has stored a record meanwhile.
    ledger.unmark(Self.id(1))
    if isFailure {
      ledger.recordFailure(of: Self.id(1), isOutcomeUnknown: true)
    } else {
      ledger.abandonAttempt(Self.id(1))
    }
    let entry = try #require(ledger[Self.id(1)])
    #expect(entry.record.attempts == 3)
    #expect(entry.record.isMarked)
    // The other process may be sending the mutation, so it can't be cancelled.
    #expect(entry.standing(usersNeedingSignIn: []) == .inFlight)
    // The next attempt of this process counts, and its end removes the mark.
    ledger.mark(Self.id(1))
    ledger.beginAttempt(Self.id(1))
    ledger.beginRequest(Self.id(1))
    ledger.recordFailure(of: Self.id(1), isOutcomeUnknown: false)
    #expect(ledger[Self.id(1)]?.record.isMarked == false)
    #expect(ledger[Self.id(1)]?.record.attempts == 4)
  }

  @Test
  func `The oldest date is that of the live mutation that was added first, even if a later one has an older date`()
    throws
  {
    var ledger = Ledger()
    #expect(ledger.oldestMadeAt == nil)
    // A clock that is set back makes the last date the oldest.
    for (number, date) in [(1, 11.0), (2, 12), (3, 10)] { ledger.add(try makeEntry(number, madeAt: date)) }
    #expect(ledger.oldestMadeAt?.timeIntervalSince1970 == 11)
    ledger.recordVerdict(.refused(reason: "no"), on: Self.id(1))
    #expect(ledger.oldestMadeAt?.timeIntervalSince1970 == 12)
    ledger.remove(Self.id(3))
    ledger.remove(Self.id(2))
    #expect(ledger.oldestMadeAt == nil)
  }

  @Test func `A mutation that is added again takes the last place in the order of addition`() throws {
    var ledger = Ledger()
    for number in 1...3 { ledger.add(try makeEntry(number, madeAt: Double(number))) }
    ledger.remove(Self.id(2))
    ledger.add(try makeEntry(2, madeAt: 4))
    ledger.remove(Self.id(1))
    #expect(ledger.oldestMadeAt?.timeIntervalSince1970 == 3)
    ledger.remove(Self.id(3))
    #expect(ledger.oldestMadeAt?.timeIntervalSince1970 == 4)
  }
}
