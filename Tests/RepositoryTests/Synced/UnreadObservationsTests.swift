import DataStore
import DataStoreTesting
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// What is observed while the store can't be read, for example because the device is locked, arrives once it can be read.
@Suite(.timeLimit(.minutes(15))) struct UnreadObservationsTests: NotesSuite {
  let fixture = NotesFixture()
  private let isUnreadable = Setting(true)
  private let failure = NotesError.store(.readFailed(InterceptedStore.error))

  /// Makes reads of the notes fail while ``isUnreadable`` is `true`.
  private func lock() {
    store.set { [isUnreadable] in
      $0.onLoad = { (key) throws(StoreError) in
        if isUnreadable.value, key.collection == "notes" { throw .readFailed(InterceptedStore.error) }
      }
      $0.onObserve = { (collection) throws(StoreError) in
        if isUnreadable.value, collection == "notes" { throw .readFailed(InterceptedStore.error) }
      }
    }
  }

  @Test(arguments: PresenceTests.policies)
  func `Observers get their first elements without another call once the store can be read`(
    policy: LoadingPolicy
  ) async throws {
    try await put(Notes("stored"))
    #expect(
      try await makeRepository(onSend: { (_) throws(NotesFailure) in throw .offline }).perform(.add("mine"), on: "a")
        == .queued)
    lock()
    var configuration = configuration
    // An attempt to send the mutation would open the key.
    configuration.leadership = NeverLeading()
    let repository = makeRepository(configuration: configuration)
    let states = repository.states(of: "a", loading: policy).subscribe()
    #expect(await states.first(1).map(\.failure) == [failure])
    let values = repository.values(of: "a", loading: policy).subscribe()
    let pendings = repository.pendingMutations(of: "a").subscribe()
    #expect(await pendings.first(1) == [[]])
    await clock.sleepers(1)
    isUnreadable.value = false
    clock.advance(by: .seconds(60))
    #expect(await values.first(1) == [Notes("stored", "mine")])
    let state = await states.first { $0.failure == nil }
    #expect(state?.presence == .value(Notes("stored", "mine")))
    #expect(await pendings.first(1) == [[.add("mine")]])
  }

  @Test func `A retry reads the store at once`() async throws {
    try await put(Notes("stored"))
    lock()
    let repository = makeRepository()
    let values = repository.values(of: "a").subscribe()
    await clock.sleepers(1)
    isUnreadable.value = false
    await repository.resumeAll()
    #expect(await values.first(1) == [Notes("stored")])
  }

  @Test func `A value that is observed with a loading policy is fetched once the store can be read`() async throws {
    server.edit("a") { $0 = Notes("fetched") }
    lock()
    let repository = makeRepository()
    let values = repository.values(of: "a", loading: .whileObserved()).subscribe()
    await clock.sleepers(1)
    isUnreadable.value = false
    clock.advance(by: .seconds(60))
    #expect(await values.first(1) == [Notes("fetched")])
  }

  @Test func `The observers of the whole repository get the stored values once they can be read`() async throws {
    for key in ["a", "b"] { try await put(Notes(key), key) }
    let isSecondUnreadable = Setting(true)
    store.set { [isUnreadable] in
      $0.onLoad = { (key) throws(StoreError) in
        if isSecondUnreadable.value, key == StoreKey.notes("b").keyName { throw .readFailed(InterceptedStore.error) }
      }
      $0.onObserve = { (collection) throws(StoreError) in
        if isUnreadable.value, collection == "notes" { throw .readFailed(InterceptedStore.error) }
      }
    }
    let repository = makeRepository()
    let values = repository.everyValue.subscribe()
    await clock.sleepers(1)
    isUnreadable.value = false
    clock.advance(by: .seconds(60))
    #expect(await values.first(1) == [Notes("a")])
    await clock.sleepers(1)
    isSecondUnreadable.value = false
    clock.advance(by: .seconds(60))
    #expect(await values.first(1) == [Notes("b")])
  }

  @Test func `The observers of the queue get an empty list too once the store can be read`() async throws {
    store.set { [isUnreadable] in
      $0.onObserve = { (collection) throws(StoreError) in
        if isUnreadable.value, collection == "notes.mutations" { throw .readFailed(InterceptedStore.error) }
      }
    }
    let repository = makeRepository()
    let events = repository.events.subscribe()
    let lists = repository.mutations.changes.subscribe()
    // Both the repository and the observer have failed to read the queue.
    for _ in 1...2 { await events.reaches { if case .storeFailed = $0 { true } else { false } } }
    await clock.sleepers(1)
    isUnreadable.value = false
    clock.advance(by: .seconds(60))
    #expect(await lists.first(1).map(\.count) == [0])
  }

  @Test func `The delays grow, another reason is shown, and nothing is read without observers`() {
    let executor = ManualTaskExecutor()
    var configuration = configuration
    configuration.taskExecutor = executor
    configuration.random = MaximumGenerator()
    let (reads, error) = (Counter(), Setting(InterceptedStore.error))
    let hooks = SimulatedStore.Hooks(onRead: { keys throws(StoreError) in
      guard keys == [StoreKey.notes("a").keyName] else { return }
      reads.next()
      throw .readFailed(error.value)
    })
    let repository = makeRepository(configuration: configuration, store: SimulatedStore(hooks: hooks))
    let failures = Setting<[NotesError?]>([])
    let observer = Task(executorPreference: executor) {
      for await state in repository.states(of: "a") { failures.value.append(state.failure) }
    }
    let pass = { (seconds: Int) in
      clock.advance(by: .seconds(seconds))
      executor.runUntilIdle()
    }
    executor.runUntilIdle()
    #expect(reads.value == 1)
    pass(1)
    #expect(reads.value == 2)
    pass(1)
    #expect(reads.value == 2)
    let otherError = SystemError(code: 13, operation: "testing", path: "memory")
    error.value = otherError
    pass(1)
    #expect(reads.value == 3)
    #expect(failures.value == [failure, .store(.readFailed(otherError))])
    observer.cancel()
    executor.runUntilIdle()
    for _ in 1...3 { pass(60) }
    #expect(reads.value == 3)
  }
}

/// A generator for which random delays are as long as possible.
private struct MaximumGenerator: RandomNumberGenerator {
  func next() -> UInt64 { .max }
}
