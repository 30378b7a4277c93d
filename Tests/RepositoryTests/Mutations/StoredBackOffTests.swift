import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// The waits of lanes after failed attempts, which outlive the process that made the attempts.
@Suite(.timeLimit(.minutes(15))) struct StoredBackOffTests: NotesSuite {
  let fixture = NotesFixture()
  private let time = Setting(Date(timeIntervalSinceReferenceDate: 0))
  private let attempts = Counter()
  private let failure = Setting<NotesFailure?>(nil)

  private func launch() -> NotesRepository {
    var configuration = configuration
    configuration.now = { [time] in time.value }
    return makeRepository(configuration: configuration) { [attempts, failure] (mutation) throws(NotesFailure) in
      guard mutation == .add("1") else { return }
      attempts.next()
      if let failure = failure.value { throw failure }
    }
  }

  /// Makes a mutation whose attempt fails, and waits until its wait is stored.
  private func performUnsuccessfully(_ failure: NotesFailure = .busy(retryAfter: .seconds(30))) async throws {
    self.failure.value = failure
    let repository = launch()
    try await #expect(repository.perform(.add("1"), on: "a") == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    let changes = try await memory.changes(of: MutationKeys(repository: "notes").record(id))
    for await change in changes where change.stored?.value.backOff != nil { break }
  }

  @Test(arguments: [NotesFailure.busy(retryAfter: .seconds(30)), .overloaded(retryAfter: .seconds(30))])
  func `A delay that the server named is waited for across relaunches, whatever the clock says`(
    failure: NotesFailure
  ) async throws {
    try await performUnsuccessfully(failure)
    // The last two are those of a clock that was set back.
    for offset in [1.0, 20, 29.9, -1, -1_000_000] {
      time.value = Date(timeIntervalSinceReferenceDate: offset)
      let repository = launch()
      #expect(await repository.report().lanes.map(\.failures) == [1])
      await repository.retryNow()
      // A lane that needn't wait gets its place after one that was ready at the launch.
      try await #expect(repository.perform(.add("2"), on: "b") == .confirmed)
      #expect(attempts.value == 1)
    }
    let repository = launch()
    _ = try await repository.mutations.list()
    self.failure.value = nil
    clock.advance(by: .seconds(30))
    try await repository.waitForPendingMutations()
    #expect(attempts.value == 2)
  }

  @Test func `Once the delay has passed while no process ran, the next one sends at once`() async throws {
    try await performUnsuccessfully()
    time.value = Date(timeIntervalSinceReferenceDate: 31)
    failure.value = nil
    try await launch().waitForPendingMutations()
    #expect(attempts.value == 2)
  }
}
