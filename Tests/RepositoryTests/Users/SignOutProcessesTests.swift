import DataStore
import DataStoreTesting
import Multicast
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// A user signs out, and perhaps in again, in one process or in several.
@Suite(.timeLimit(.minutes(15))) struct SignOutProcessesTests {
  private typealias Source = ScriptedSource<UserKey, Notes, NotesMutation, NotesFailure>
  private typealias Repository = SyncedRepository<Source>

  private let executor = ManualTaskExecutor()
  private let clock = ManualClock()
  private let storage = SimulatedStorage()
  private let server = InMemoryServer<UserKey, Notes, NotesMutation>(empty: Notes("jake's"))
  private let key = UserKey("jake", "a")

  private func makeRepository(_ store: SimulatedStore) -> Repository {
    var configuration = RepositoryConfiguration(clock: clock)
    configuration.taskExecutor = executor
    defer { executor.runUntilIdle() }
    return Repository(
      Source(
        "notes", fetch: { [server] in server.value(of: $0) },
        send: { (_, _, _) throws(NotesFailure) in throw .offline }, disposition: { $0.disposition }),
      store: store, configuration: configuration)
  }

  /// Creates a store whose erasure of the user's value waits at a gate.
  private func makeStore(erasingBehind gate: Gate) -> SimulatedStore {
    let valueKey = StoreKey<Notes>("notes", id: key.storeID).keyName
    return SimulatedStore(
      storage: storage,
      hooks: .init(onCommit: { (keys) async in if keys == [valueKey] { await gate.pass() } }))
  }

  /// Starts a call and runs all jobs that are ready.
  private func start(_ body: @escaping @Sendable () async -> Void) {
    _ = Task(executorPreference: executor) { await body() }
    executor.runUntilIdle()
  }

  /// Makes each store notice external changes, three times, because a repository may react with new changes.
  private func noticeExternalChanges(in stores: SimulatedStore...) {
    for _ in 0..<3 {
      for store in stores { start { await store.noticeExternalChanges() } }
    }
  }

  private var storedValue: Notes? { storage.value(of: StoreKey<Notes>("notes", id: key.storeID)) }

  @Test func `No process erases data that is stored after a new sign-in`() {
    let gate = Gate()
    let (firstStore, secondStore) = (makeStore(erasingBehind: gate), SimulatedStore(storage: storage))
    let (first, second) = (makeRepository(firstStore), makeRepository(secondStore))
    start { [key] in try? await second.reload(key) }
    #expect(storedValue == Notes("jake's"))
    start { try? await first.signOut(userID: "jake", unsent: .refuse) }
    noticeExternalChanges(in: firstStore, secondStore)
    server.edit(key) { $0 = Notes("jake's new ones") }
    let isSignedIn = Setting(false)
    let valueAtSignIn = Setting<Notes?>(nil)
    start { [self] in
      // Signs the user in again, and waits until the erasure is complete.
      await second.credentialsChanged(userID: "jake")
      isSignedIn.value = true
      valueAtSignIn.value = storedValue
      try? await second.reload(key)
    }
    // The erasure isn't complete.
    #expect(!isSignedIn.value)
    #expect(storedValue == Notes("jake's"))
    start { gate.open() }
    noticeExternalChanges(in: firstStore, secondStore)
    #expect(isSignedIn.value)
    #expect(valueAtSignIn.value == nil)
    #expect(storedValue == Notes("jake's new ones"))
    // The stored record of the user has the phase `signedIn`.
    #expect(storage.texts.contains { $0.contains("signedIn") })
  }

  @Test(arguments: [false, true])
  func `A sign-in is stored although the store can't be read at first, unless the user signs out in between`(
    signsOutInBetween: Bool
  ) {
    let userKey = StoreKey<UserRecord>("notes.users", id: UserDigest("jake").text)
    let earlier = makeRepository(SimulatedStore(storage: storage))
    start { try? await earlier.signOut(userID: "jake", unsent: .refuse) }
    #expect(storage.value(of: userKey)?.phase == .signedOut)
    let isUnreadable = Setting(true)
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onRead: { (_) throws(StoreError) in
        if isUnreadable.value { throw .readFailed(SystemError(code: 5, operation: "testing", path: "memory")) }
      }))
    let repository = makeRepository(store)
    start { await repository.credentialsChanged(userID: "jake") }
    isUnreadable.value = false
    if signsOutInBetween { start { try? await repository.signOut(userID: "jake", unsent: .refuse) } }
    clock.advance(by: .seconds(60))
    executor.runUntilIdle()
    #expect(storage.value(of: userKey)?.phase == (signsOutInBetween ? .signedOut : .signedIn))
    #expect(storage.value(of: userKey)?.signOutCount == (signsOutInBetween ? 2 : 1))
  }

  @Test func `No event names a user who signs out while a request begins`() {
    var jobCountsWithNamedUser: [[Int]] = []
    for jobCount in 0..<40 {
      for laterJobCount in 0..<8 where eventsNameUser(jobCount: jobCount, laterJobCount: laterJobCount) {
        jobCountsWithNamedUser.append([jobCount, laterJobCount])
      }
    }
    #expect(jobCountsWithNamedUser == [])
    // Without a sign-out, the events of the request name the user.
    #expect(eventsNameUser(jobCount: 40, laterJobCount: 8, signsOut: false))
  }

  /// Makes a request and returns whether an event names its user.
  ///
  /// The request pauses after `jobCount` jobs, the user signs out, and the call is cancelled after `laterJobCount`
  /// further jobs.
  private func eventsNameUser(jobCount: Int, laterJobCount: Int, signsOut: Bool = true) -> Bool {
    let repository = makeRepository(SimulatedStore(storage: SimulatedStorage()))
    let callerExecutor = ManualTaskExecutor()
    var random = SplitMix64(seed: 0)
    let call = Task(executorPreference: callerExecutor) { [key] in try? await repository.reload(key) }
    // The engine reads what the store reports on the other executor.
    for _ in 0..<jobCount {
      callerExecutor.run(atMost: 1, using: &random)
      executor.run(atMost: 1, using: &random)
    }
    if signsOut { start { try? await repository.signOut(userID: "jake", unsent: .discard) } }
    callerExecutor.run(atMost: laterJobCount, using: &random)
    call.cancel()
    // Jobs on one executor may make jobs on the other ready.
    for _ in 0..<20 {
      callerExecutor.runUntilIdle()
      executor.runUntilIdle()
    }
    return replayedEvents(of: repository).contains { $0.contains("jake") }
  }

  @Test(arguments: [false, true])
  func `An event reports that a user's value couldn't be read, unless the user has signed out`(signsOut: Bool) {
    let (gate, valueKey) = (Gate(), StoreKey<Notes>("notes", id: key.storeID).keyName)
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onRead: { (keys) async throws(StoreError) in
        guard keys == [valueKey] else { return }
        await gate.pass()
        throw .migrationFailed(valueKey, from: 1, reason: "testing")
      }))
    let repository = makeRepository(store)
    start { [key] in for await _ in repository.states(of: key) {} }
    if signsOut { start { try? await repository.signOut(userID: "jake", unsent: .discard) } }
    start { gate.open() }
    #expect(replayedEvents(of: repository).contains { $0.contains("jake") } == !signsOut)
  }

  private func replayedEvents(of repository: Repository) -> [String] {
    let (events, seen) = (repository.events.subscribe(), Setting<[String]>([]))
    let subscriber = Task(executorPreference: executor) { for await event in events { seen.value.append("\(event)") } }
    executor.runUntilIdle()
    subscriber.cancel()
    executor.runUntilIdle()
    return seen.value
  }

  @Test func `A surviving process completes a sign-out that a killed process began`() {
    let (firstStore, secondStore) = (makeStore(erasingBehind: Gate()), SimulatedStore(storage: storage))
    let first = makeRepository(firstStore)
    let second = makeRepository(secondStore)
    start { [key] in try? await second.reload(key) }
    start { try? await first.signOut(userID: "jake", unsent: .refuse) }
    noticeExternalChanges(in: secondStore)
    #expect(storedValue == Notes("jake's"))
    // From now on, the first process has no effect, as after a kill.
    firstStore.disconnect()
    executor.runUntilIdle()
    #expect(storage.texts.filter { $0.contains("jake") } == [])
    withExtendedLifetime(second) {}
  }
}
