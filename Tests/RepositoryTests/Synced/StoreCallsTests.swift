import DataStore
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// How often a repository calls its store.
///
/// On a database, each call is a round trip.
@Suite(.timeLimit(.minutes(15))) struct StoreCallsTests: NotesSuite {
  let fixture = NotesFixture()

  /// Returns the kinds of the calls during the run of a closure, in order.
  private func calls(during body: () async throws -> Void) async rethrows -> [String] {
    let calls = Setting<[String]>([])
    store.set {
      $0.onLoad = { (_) in calls.value.append("load") }
      $0.onCommit = { (_) in calls.value.append("commit") }
      $0.onObserve = { (_) in calls.value.append("observe") }
    }
    try await body()
    return calls.value
  }

  @Test(arguments: [EvictionPolicy(), EvictionPolicy(maximumBytes: 1_000_000)])
  func `A reload makes one call of the store, and a change that is confirmed makes two`(
    eviction: EvictionPolicy
  ) async throws {
    var configuration = configuration
    configuration.eviction = eviction
    let repository = makeRepository(configuration: configuration)
    let values = repository.values(of: "a").subscribe()
    // The first change also reads the counter of the queue.
    try await repository.reload("a")
    try await #expect(repository.perform(.add("1"), on: "a") == .confirmed)
    try await #expect(calls { try await repository.reload("a") } == ["commit"])
    try await #expect(calls { _ = try await repository.perform(.add("2"), on: "a") } == ["commit", "commit"])
    try await #expect(repository.mutations.list().isEmpty)
    withExtendedLifetime(values) {}
  }

  @Test func `A change is stored although another repository has made one since the last change`() async throws {
    let (repository, other) = (makeRepository(), makeRepository(store: memory))
    for text in ["1", "2", "3"] {
      try await #expect(repository.perform(.add(text), on: "a") == .confirmed)
      try await #expect(other.perform(.add(text), on: "b") == .confirmed)
    }
    #expect(server.applied.count == 6)
  }
}
