import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport

@testable import Repository

/// A run of two repositories of one list: a seed determines edits, fetches, pages, polls, edits of others, and which
/// packets are late, lost or repeated.
///
/// Two laws hold. No observer sees fewer rows than before, except for those that were deleted or rolled back, and one for
/// each row that was added. After all loaded pages were reloaded, a list shows exactly the first rows of the server.
struct ListRun {
  /// What the run knows of the rows that a list may have lost.
  private struct Losses {
    /// The number of deletions and additions that were made, and of those that were rolled back.
    var allowed = 0
    var maximumCounts: [Int: Int] = [:]
    var violations: [String] = []
    var openCalls = 0
    var newest: [Int: Paged<Row>] = [:]

    mutating func record(_ list: Paged<Row>, _ number: Int) {
      newest[number] = list
      let maximum = max(maximumCounts[number] ?? 0, list.elements.count)
      maximumCounts[number] = maximum
      let ids = list.elements.map(\.id)
      if ids.count < maximum - allowed { violations.append("\(maximum) rows became \(ids.count): \(ids)") }
      if Set(ids).count < ids.count { violations.append("A row is twice in \(ids).") }
    }
  }

  private static var pageSize: Int { 3 }

  private let executor = ManualTaskExecutor()
  private let network: SimulatedNetwork
  private let fixture: ListFixture
  private let storage = SimulatedStorage { Date(timeIntervalSinceReferenceDate: 0) }
  private let losses = Setting(Losses())
  private var random: SplitMix64
  private var repositories: [ListFixture.Repository] = []
  private var stores: [SimulatedStore] = []
  private var lastID = 100
  private(set) var trace: [String] = []

  init(seed: UInt64) {
    random = SplitMix64(seed: seed)
    network = SimulatedNetwork(seed: random.next(), conditions: .rough)
    fixture = ListFixture(count: 14)
    fixture.onFetch = { [network, server = fixture.server] (cursor, limit) async throws(NotesFailure) in
      do throws(SimulatedNetwork.Failure) {
        return try await network.exchange("fetch") { server.page(of: "a", after: cursor, limit: limit) }
      } catch { throw error == .unreachable ? .offline : .brokenConnection }
    }
    fixture.onApply = { [network, server = fixture.server] (change, id) async throws(NotesFailure) in
      do throws(SimulatedNetwork.Failure) {
        try await network.exchange("\(change)") { _ = try? server.apply(change, to: "a", id: id) }
      } catch { throw error == .unreachable ? .offline : .brokenConnection }
    }
  }

  /// Performs the run.
  ///
  /// - Returns: Descriptions of the violations.
  mutating func run() -> [String] {
    for number in 0..<2 { addRepository(number) }
    for _ in 0..<40 {
      operate()
      executor.run(atMost: Int.random(in: 0...25, using: &random), using: &random)
    }
    network.conditions = .reliable
    noticeExternalChanges()
    finishCalls()
    for repository in repositories {
      call(repository) { repository in try await repository.waitForPendingMutations() }
    }
    finishCalls()
    // One after the other, because each stores a value that the other one's request may not include.
    for repository in repositories {
      call(repository) { repository in try await repository.reloadLoadedPages("a") }
      finishCalls()
    }
    check()
    return losses.value.violations
  }

  private mutating func addRepository(_ number: Int) {
    var configuration = fixture.configuration(pageSize: Self.pageSize)
    configuration.retryPolicy = RetryPolicy(cap: .seconds(8))
    configuration.random = SplitMix64(seed: random.next())
    configuration.leadership = StoreLeadership()
    configuration.taskExecutor = executor
    let store = SimulatedStore(storage: storage)
    let repository = ListFixture.Repository(
      ListFixture.Source(fixture: fixture), store: store, configuration: configuration)
    repositories.append(repository)
    stores.append(store)
    let (values, events) = (repository.values(of: "a").subscribe(), repository.events.subscribe())
    Task(executorPreference: executor) { [losses] in
      for await list in values { losses.value.record(list, number) }
    }
    Task(executorPreference: executor) { [losses] in
      for await event in events { if case .mutationRefused = event { losses.value.allowed += 1 } }
    }
  }

  private mutating func operate() {
    let id = fixture.server.value(of: "a").elements.randomElement(using: &random)?.id ?? 1
    let operation = Int.random(in: 0..<20, using: &random)
    trace.append("\(operation) on \(id)")
    switch operation {
    case 0...3: call { repository in try await repository.loadMore("a") }
    case 4...6: call { repository in try await repository.reload("a") }
    case 7: call { repository in try await repository.reloadLoadedPages("a") }
    case 8, 9: call { repository in try await repository.perform(.rename(id, "\(operation)"), on: "a") }
    case 10: call { repository in try await repository.perform(.increment(id), on: "a") }
    case 11:
      lastID += 1
      // The other repository may store a list before it notices this row, and then makes no room for it.
      losses.value.allowed += 1
      call { [lastID] repository in try await repository.perform(.add(lastID), on: "a") }
    case 12 where losses.value.allowed < 4:
      losses.value.allowed += 1
      call { repository in try await repository.perform(.delete(id), on: "a") }
    case 13 where losses.value.allowed < 4:
      losses.value.allowed += 1
      fixture.server.edit("a") { $0.remove(id) }
    case 14:
      lastID += 1
      fixture.server.edit("a") { [lastID] in $0.elements.insert(Row(id: lastID), at: 0) }
    case 15: fixture.server.edit("a") { $0.update(id) { $0.title = "elsewhere" } }
    case 17: noticeExternalChanges()
    case 16: fixture.clock.advance(by: .seconds(2))
    default: for _ in 0..<3 { network.step() }
    }
  }

  private mutating func call(_ work: @escaping @Sendable (ListFixture.Repository) async throws -> Void) {
    call(repositories.randomElement(using: &random)!, work)
  }

  private func call(
    _ repository: ListFixture.Repository, _ work: @escaping @Sendable (ListFixture.Repository) async throws -> Void
  ) {
    losses.value.openCalls += 1
    Task(executorPreference: executor) { [losses] in
      // A call that fails changes nothing, which the laws then show.
      try? await work(repository)
      losses.value.openCalls -= 1
    }
  }

  private mutating func finishCalls() {
    for _ in 0..<1_000 {
      executor.run(atMost: 100_000, using: &random)
      if !network.packets.isEmpty {
        network.step()
      } else if losses.value.openCalls > 0 {
        noticeExternalChanges()
        fixture.clock.advance(by: .seconds(10))
      } else {
        return
      }
    }
    losses.value.violations.append("A call doesn't return.")
  }

  private func noticeExternalChanges() {
    for store in stores { Task(executorPreference: executor) { await store.noticeExternalChanges() } }
  }

  private mutating func check() {
    noticeExternalChanges()
    executor.run(atMost: 100_000, using: &random)
    let rows = fixture.server.value(of: "a").elements
    for (number, list) in losses.value.newest where !rows.starts(with: list.elements) {
      losses.value.violations.append(
        "Repository \(number) shows \(list.elements.map(\.id)), and the server has \(rows.map(\.id)).")
    }
  }
}
