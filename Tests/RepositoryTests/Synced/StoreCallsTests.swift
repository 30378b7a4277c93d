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
      $0.onCatchUp = { calls.value.append("catch up") }
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

  @Test func `A value of another process is shown without a call of the store, however many changes are pending`()
    async throws
  {
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    for number in 1...50 { try await #expect(repository.perform(.add("\(number)"), on: "a") == .queued) }
    let values = repository.values(of: "a").subscribe()
    try await #expect(
      calls {
        try await memory.save(Notes("external"), for: .notes("a"))
        await values.reaches { $0.texts.contains("external") && $0.texts.contains("50") }
      } == [])
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
