import DataStore
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// The list of mutations, observed while it changes.
@Suite(.timeLimit(.minutes(15))) struct ObservedListTests: NotesSuite {
  let fixture = NotesFixture()

  @Test(arguments: [(600, 32), (2_600, 160)])
  func `The changes of a long list are one element in the time of a frame for each 256 mutations`(
    count: Int, milliseconds: Int
  ) async throws {
    let keys = MutationKeys(repository: "notes")
    var batch = StoreBatch()
    for number in 1...count {
      let record = try MutationRecord.sample(NotesMutation.add("1"), sequence: UInt64(number))
      batch.save(record, for: keys.record(MutationID(rawValue: "\(number)")))
    }
    try await memory.commit(batch)
    let repository = makeRepository()
    await repository.suspend()
    let lists = repository.mutations.changes.subscribe()
    #expect(await lists.first(1).map(\.count) == [count])
    try await #expect(repository.perform(.add("2"), on: "b") == .queued)
    await clock.sleepers()
    clock.advance(by: .milliseconds(milliseconds - 1))
    try await #expect(repository.perform(.add("3"), on: "b") == .queued)
    clock.advance(by: .milliseconds(1))
    #expect(await lists.first(1).map(\.count) == [count + 2])
  }
}
