import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

@Suite(.timeLimit(.minutes(15))) struct RepositoryReportTests: NotesSuite {
  let fixture: NotesFixture
  private let time = Setting(Date(timeIntervalSince1970: 1_000))
  private let network = ManualNetworkMonitor()

  init() {
    fixture = NotesFixture(now: { [time] in time.value })
  }

  private var reportConfiguration: RepositoryConfiguration {
    RepositoryConfiguration(clock: clock, now: { [time] in time.value }, network: network)
  }

  @Test func `The report of an unused repository is empty`() async throws {
    let repository = makeRepository(configuration: reportConfiguration)
    let report = await repository.report()
    var expected = RepositoryReport(name: "notes", time: time.value, keys: [])
    expected.leadership = .independent
    #expect(report == expected)
    #expect(report.description == "notes: 0 keys, 0 mutations in 0 lanes (0 bytes), 0 undecided")
  }

  @Test func `A report contains the keys and the lanes`() async throws {
    server.edit("a") { $0 = Notes("x") }
    let isOffline = Setting(false)
    let repository = makeRepository(
      configuration: reportConfiguration,
      onSend: { _ throws(NotesFailure) in if isOffline.value { throw .offline } },
      onFetch: { _ throws(NotesFailure) in if isOffline.value { throw .offline } })
    let observers = [repository.values(of: "a"), repository.values(of: "a", loading: .whileObserved())].map {
      $0.subscribe()
    }
    for observer in observers { _ = await observer.first(1) }
    time.value += 10
    isOffline.value = true
    var delay: Duration?
    let events = repository.events.subscribe()
    #expect(try await repository.perform(.add("y"), on: "a") == .queued)
    for await event in events {
      guard case .retryScheduled(_, _, let scheduledDelay, _) = event else { continue }
      delay = scheduledDelay
      break
    }
    await #expect(throws: NotesError.server(.offline)) { try await repository.reload("b") }
    time.value += 60

    let report = await repository.report()
    #expect(report.name == "notes")
    #expect(report.time == Date(timeIntervalSince1970: 1_070))
    #expect(report.keys.map(\.key) == ["a", "b"])
    #expect(report.keys.map(\.byteCount) == [#"{"texts":["x","y"]}"#.utf8.count, nil])
    #expect(report.keys.map(\.fetchedAt) == [Date(timeIntervalSince1970: 1_000), nil])
    #expect(report.keys.map(\.isFresh) == [false, false])
    #expect(report.keys.map(\.observerCount) == [2, 0])
    #expect(report.keys.map(\.pendingCount) == [1, 0])
    #expect(report.keys.map(\.isLoading) == [false, false])
    #expect(report.keys.map(\.failure) == [nil, "\(NotesError.server(.offline))"])
    #expect(
      report.lanes == [
        .init(
          lane: "a", count: 1, oldest: Date(timeIntervalSince1970: 1_010), failures: 1,
          status: .backingOff(try #require(delay)))
      ])
    #expect(report.undecidedCount == 0)
    let decoded = try JSONDecoder().decode(RepositoryReport.self, from: JSONEncoder().encode(report))
    #expect(decoded == report)
    let seconds = try #require(delay).components.seconds
    #expect(
      report.description.split(separator: "\n").dropFirst() == [
        "  key a: 19 bytes, 70 s old, 2 observers, 1 pending",
        "  key b: no value in memory, 0 observers, failed: \(NotesError.server(.offline))",
        "  lane a: 1 mutation, the oldest 60 s old, 1 failed attempt, next attempt in \(seconds) s",
      ])
  }

  @Test func `A report says which keys are loading or fresh, and how many mutations are undecided`() async throws {
    let gate = Gate()
    let repository = makeRepository(
      configuration: reportConfiguration, onSend: { _ throws(NotesFailure) in throw .conflict },
      onFetch: { key async throws(NotesFailure) in if key == "b" { await gate.pass() } })
    try await repository.reload("a")
    let call = Task { try await repository.reload("b") }
    await gate.arrivals()
    if case .conflicted = try await repository.perform(.add("1"), on: "a") {} else { Issue.record("No conflict.") }
    let report = await repository.report()
    #expect(report.keys.map(\.isFresh) == [true, false])
    #expect(report.keys.map(\.isLoading) == [false, true])
    #expect(report.undecidedCount == 1)
    #expect(report.queueByteCount > 0)
    #expect(report.lanes == [])
    gate.open()
    try await call.value
  }

  @Test func `A report contains the error of a queue that can't be read`() async throws {
    store.set { $0.onObserve = { (_) throws(StoreError) in throw .readFailed(InterceptedStore.error) } }
    let repository = makeRepository(configuration: reportConfiguration)
    #expect(await repository.report().storeFailure == StoreError.readFailed(InterceptedStore.error).description)
  }

  @Test func `A report contains the status of each lane`() async throws {
    let (gate, attempts) = (Gate(), Counter())
    let repository = makeRepository(configuration: reportConfiguration) { mutation async throws(NotesFailure) in
      switch mutation {
      case .add("needs sign-in"): if attempts.next() == 1 { throw .signedOut }
      case .add("is refused"): throw .refused
      default: await gate.pass()
      }
    }
    await #expect(throws: NotesError.self) { try await repository.perform(.add("is refused"), on: "a") }
    let call = Task { try await repository.perform(.add("is sent"), on: "a") }
    await gate.arrivals()
    #expect(await repository.report().lanes.map(\.status) == [.inFlight])
    gate.open()
    _ = try await call.value
    // Neither the refused mutation nor the sent one remains.
    #expect(await repository.report().lanes == [])
    #expect(try await repository.perform(.add("needs sign-in"), on: "a") == .queued)
    #expect(await repository.report().lanes.map(\.status) == [.needsSignIn])
    await repository.credentialsChanged(userID: nil)
    try await repository.waitForPendingMutations()
    let events = repository.events.subscribe()
    network.status = .offline
    for await event in events where event == .networkChanged(.offline) { break }
    #expect(try await repository.perform(.add("is offline"), on: "b") == .queued)
    let lanes = await repository.report().lanes
    #expect(lanes.map(\.lane) == ["b"])
    #expect(lanes.map(\.status) == [.offline])
  }
}
