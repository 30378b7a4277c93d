import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// Tests of the requests that a repository makes because its values are observed.
///
/// Most tests use virtual time.
@Suite(.timeLimit(.minutes(15))) struct WhileObservedTests {
  /// A server, a repository and observers on one manual executor.
  private final class World: Sendable {
    let clock = ManualClock()
    let network = ManualNetworkMonitor()
    let activity = ManualActivityMonitor()
    /// Whether fetches succeed.
    let fetchesSucceed = Setting(true)
    /// Whether mutations can be sent.
    let sendsSucceed = Setting(true)
    /// Whether the server asks for a sign-in when a mutation is sent.
    let isSignedOut = Setting(false)
    /// Whether fetches wait for ``answer()`` or their cancellation.
    let holdsFetches = Setting(false)
    /// Whether sent mutations wait for ``answer()``.
    let holdsSends = Setting(false)
    private let gates = Setting<[Gate]>([])
    private let executor = ManualTaskExecutor()
    private let storage: SimulatedStorage
    private let requests = Lock<[String]>([])
    private let observers = Lock<[String: Task<Void, Never>]>([:])
    private let repository = Lock<NotesRepository?>(nil)

    init(timeToLive: Duration = .seconds(60)) {
      storage = SimulatedStorage { [clock] in clock.date }
      var configuration = RepositoryConfiguration(
        freshness: Freshness(timeToLive: timeToLive), clock: clock, now: { [clock] in clock.date },
        random: SplitMix64(seed: 1), network: network, activity: activity)
      configuration.taskExecutor = executor
      let source = NotesSource(
        fetch: { [unowned self] (key) async throws(NotesFailure) in
          recordRequest("fetch \(key)")
          if holdsFetches.value { await waitForAnswer() }
          if !fetchesSucceed.value || Task.isCancelled { throw .offline }
          return Notes(key)
        },
        send: { [unowned self] (mutation, key, _) async throws(NotesFailure) in
          recordRequest("send \(key)")
          if holdsSends.value { await waitForAnswer() }
          if isSignedOut.value { throw .signedOut }
          if !sendsSucceed.value { throw .offline }
          return .done
        })
      let store = SimulatedStore(storage: storage)
      repository.withLock { $0 = NotesRepository(source, store: store, configuration: configuration) }
      executor.runUntilIdle()
    }

    private func waitForAnswer() async {
      let gate = Gate()
      gates.value.append(gate)
      await gate.pass()
    }

    /// Lets the oldest waiting request continue.
    func answer() {
      executor.runUntilIdle()
      gates.value.removeFirst().open()
      executor.runUntilIdle()
    }

    private func recordRequest(_ request: String) { requests.withLock { $0.append(request) } }

    /// Runs all ready jobs, and returns the requests that were made since this function was last called.
    func takeRequests() -> [String] {
      executor.runUntilIdle()
      return requests.withLock { requests in
        defer { requests = [] }
        return requests
      }
    }

    @discardableResult
    func call(_ body: @escaping @Sendable (NotesRepository) async -> Void) -> Task<Void, Never> {
      let repository = repository.withLock { $0 }
      return Task(executorPreference: executor) { if let repository { await body(repository) } }
    }

    func observe(_ key: String, as name: String, _ loading: LoadingPolicy = .whileObserved()) {
      guard let values = repository.withLock({ $0?.values(of: key, loading: loading) }) else { return }
      let task = Task(executorPreference: executor) { for await _ in values {} }
      observers.withLock { $0[name] = task }
      executor.runUntilIdle()
    }

    func removeObserver(_ name: String) {
      observers.withLock { $0.removeValue(forKey: name) }?.cancel()
      executor.runUntilIdle()
    }

    func wait(seconds: Int) {
      for _ in 0..<seconds {
        executor.runUntilIdle()
        clock.advance(by: .seconds(1))
      }
      executor.runUntilIdle()
    }
  }

  private let world = World()

  @Test func `The first observer causes a fetch, a second one doesn't`() {
    world.observe("a", as: "first")
    #expect(world.takeRequests() == ["fetch a"])
    world.observe("a", as: "second")
    world.observe("a", as: "third", .whileObserved(stopTimeout: .seconds(1)))
    world.observe("a", as: "never", .never)
    #expect(world.takeRequests() == [])
    world.wait(seconds: 1000)
    #expect(world.takeRequests() == [])
  }

  @Test func `Nothing is fetched for observers with the loading policy 'never'`() {
    world.observe("a", as: "never", .never)
    world.call { await $0.invalidate(.all) }
    world.activity.activity = .inactive
    world.wait(seconds: 1)
    world.activity.activity = .active
    world.network.status = .offline
    world.wait(seconds: 1)
    world.network.status = .online
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
  }

  @Test func `A fresh value isn't fetched`() {
    world.call { try? await $0.reload("a") }
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 59)
    world.observe("a", as: "first")
    #expect(world.takeRequests() == [])
    world.removeObserver("first")
    world.wait(seconds: 5)
    world.observe("a", as: "second")
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `An observer causes a fetch if it returns after the stop timeout, but not before`() {
    world.observe("a", as: "first")
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 100)
    world.removeObserver("first")
    world.wait(seconds: 4)
    world.observe("a", as: "second")
    #expect(world.takeRequests() == [])
    world.removeObserver("second")
    world.wait(seconds: 5)
    world.observe("a", as: "third")
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `A value that is observed with an interval is fetched repeatedly until its observer leaves`() {
    world.observe("a", as: "first", .whileObserved(every: .seconds(10)))
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 9)
    #expect(world.takeRequests() == [])
    world.wait(seconds: 2)
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 5)
    // A fetch for a call also restarts the interval.
    world.call { try? await $0.reload("a") }
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 9)
    #expect(world.takeRequests() == [])
    world.wait(seconds: 2)
    #expect(world.takeRequests() == ["fetch a"])
    world.removeObserver("first")
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
  }

  @Test func `An interval continues after failed fetches`() {
    world.fetchesSucceed.value = false
    world.observe("a", as: "first", .whileObserved(every: .seconds(10)))
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 11)
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 11)
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `An app that becomes active fetches stale values once`() {
    world.observe("a", as: "a")
    world.observe("b", as: "b")
    #expect(world.takeRequests() == ["fetch a", "fetch b"])
    world.wait(seconds: 50)
    world.call { try? await $0.reload("b") }
    #expect(world.takeRequests() == ["fetch b"])
    world.wait(seconds: 20)
    world.activity.activity = .inactive
    #expect(world.takeRequests() == [])
    world.activity.activity = .active
    world.activity.activity = .active
    world.wait(seconds: 1)
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `Nothing is fetched while the app is inactive`() {
    world.activity.activity = .inactive
    world.observe("a", as: "first", .whileObserved(every: .seconds(10)))
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
    world.activity.activity = .active
    world.wait(seconds: 1)
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `An invalidated value is fetched if it is observed`() {
    world.observe("a", as: "a")
    world.observe("b", as: "b", .never)
    world.call { try? await $0.reload("b") }
    #expect(world.takeRequests() == ["fetch a", "fetch b"])
    world.call { await $0.invalidate(.key("b")) }
    #expect(world.takeRequests() == [])
    world.call { await $0.invalidate(.all) }
    #expect(world.takeRequests() == ["fetch a"])
    world.call { try? await $0.refresh("b") }
    #expect(world.takeRequests() == ["fetch b"])
    world.call { try? await $0.refresh("b") }
    #expect(world.takeRequests() == [])
    // The observer of "a" leaves before an invalidation, and returns after it.
    world.removeObserver("a")
    world.call { await $0.invalidate(.key("a")) }
    #expect(world.takeRequests() == [])
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `An invalidation also applies to keys that aren't in use`() {
    let keys = (0..<40).map { "key \($0)" }
    for key in keys { world.call { try? await $0.reload(key) } }
    #expect(world.takeRequests() == keys.map { "fetch \($0)" })
    world.call { await $0.invalidate(.key(keys[0])) }
    world.wait(seconds: 1)
    for key in keys.prefix(2) { world.call { try? await $0.refresh(key) } }
    #expect(world.takeRequests() == ["fetch \(keys[0])"])
    world.call { await $0.invalidate(.all) }
    world.wait(seconds: 1)
    for key in keys.prefix(2) { world.call { try? await $0.refresh(key) } }
    #expect(world.takeRequests() == ["fetch \(keys[0])", "fetch \(keys[1])"])
  }

  @Test func `Nothing is requested while the network is unavailable, and afterwards mutations precede fetches`() {
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
    world.network.status = .offline
    world.observe("b", as: "b")
    let result = Setting<MutationResult?>(nil)
    world.call { result.value = try? await $0.perform(.add("1"), on: "a") }
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
    #expect(result.value == .queued)
    world.network.status = .online
    world.wait(seconds: 2)
    #expect(world.takeRequests() == ["send a", "fetch a", "fetch b"])
  }

  @Test func `A call that waits for its turn returns 'queued' when the network becomes unavailable`() {
    world.call { try? await $0.reload("a") }
    #expect(world.takeRequests() == ["fetch a"])
    let results = Setting<[MutationResult?]>([])
    world.holdsSends.value = true
    for text in ["1", "2"] {
      world.call { repository in
        let result = try? await repository.perform(.add(text), on: "a")
        results.value.append(result)
      }
    }
    #expect(world.takeRequests() == ["send a"])
    #expect(results.value == [])
    world.network.status = .offline
    world.wait(seconds: 1)
    // The second call returns although the first mutation is still in flight.
    #expect(results.value == [.queued])
    world.sendsSucceed.value = false
    world.answer()
    #expect(results.value == [.queued, .queued])
    world.wait(seconds: 1000)
    #expect(world.takeRequests() == [])
    (world.sendsSucceed.value, world.holdsSends.value) = (true, false)
    world.network.status = .unknown
    #expect(world.takeRequests() == ["send a", "send a"])
  }

  @Test func `A call whose credentials the server refused returns 'queued' while the network is unavailable`() {
    world.call { try? await $0.reload("a") }
    let result = Setting<MutationResult?>(nil)
    (world.holdsSends.value, world.isSignedOut.value) = (true, true)
    world.call { result.value = try? await $0.perform(.add("1"), on: "a") }
    #expect(world.takeRequests() == ["fetch a", "send a"])
    // The credentials change during the attempt, so the mutation then waits only for the network, not for a sign-in.
    world.call { await $0.credentialsChanged(userID: nil) }
    world.wait(seconds: 1)
    world.network.status = .offline
    world.wait(seconds: 1)
    #expect(result.value == nil)
    world.answer()
    #expect(result.value == .queued)
    #expect(world.takeRequests() == [])
    (world.holdsSends.value, world.isSignedOut.value) = (false, false)
    world.network.status = .online
    #expect(world.takeRequests() == ["send a"])
  }

  @Test func `When the network is back but mutations can't be sent, observed values are fetched after a delay`() {
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
    world.network.status = .offline
    world.call { _ = try? await $0.perform(.add("1"), on: "a") }
    world.wait(seconds: 100)
    world.sendsSucceed.value = false
    world.network.status = .online
    #expect(world.takeRequests().first == "send a")
    world.wait(seconds: 4)
    #expect(!world.takeRequests().contains("fetch a"))
    world.wait(seconds: 3)
    #expect(world.takeRequests().contains("fetch a"))
  }

  @Test func `If mutations can't be sent, a network that is available only briefly causes no fetch`() {
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
    world.sendsSucceed.value = false
    world.network.status = .offline
    world.call { _ = try? await $0.perform(.add("1"), on: "a") }
    world.wait(seconds: 100)
    world.network.status = .online
    #expect(world.takeRequests().first == "send a")
    world.network.status = .offline
    world.wait(seconds: 10)
    #expect(!world.takeRequests().contains("fetch a"))
  }

  @Test func `A reply to a request that began before the network was lost doesn't prove that the network is back`() {
    world.holdsFetches.value = true
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
    world.network.status = .offline
    world.wait(seconds: 1)
    world.answer()
    world.wait(seconds: 100)
    world.call { await $0.invalidate(.all) }
    #expect(world.takeRequests() == [])
    world.network.status = .online
    world.wait(seconds: 2)
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `A fetch on a lost connection is repeated when the network is back`() {
    world.holdsFetches.value = true
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
    world.network.status = .offline
    world.wait(seconds: 1)
    world.network.status = .online
    world.wait(seconds: 2)
    #expect(world.takeRequests() == [])
    world.fetchesSucceed.value = false
    world.answer()
    world.fetchesSucceed.value = true
    #expect(world.takeRequests() == ["fetch a"])
    world.answer()
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
  }

  @Test func `If a call's request fails, it is repeated for an observer that subscribed during the request`() {
    world.holdsFetches.value = true
    world.call { try? await $0.reload("a") }
    #expect(world.takeRequests() == ["fetch a"])
    world.observe("a", as: "a")
    #expect(world.takeRequests() == [])
    world.fetchesSucceed.value = false
    world.answer()
    #expect(world.takeRequests() == ["fetch a"])
    world.answer()
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
  }

  @Test func `A reply to a call that began before the network was lost doesn't end the wait for the network`() {
    world.holdsFetches.value = true
    world.call { try? await $0.reload("a") }
    #expect(world.takeRequests() == ["fetch a"])
    world.network.status = .offline
    world.call { _ = try? await $0.perform(.add("1"), on: "b") }
    world.wait(seconds: 1)
    world.answer()
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
    world.network.status = .online
    #expect(world.takeRequests() == ["send b"])
  }

  @Test func `If a fetch for a previous observer fails, it is repeated for one that subscribed during the fetch`() {
    world.holdsFetches.value = true
    world.observe("a", as: "first")
    world.removeObserver("first")
    world.wait(seconds: 10)
    world.observe("a", as: "second")
    #expect(world.takeRequests() == ["fetch a"])
    world.fetchesSucceed.value = false
    world.answer()
    world.fetchesSucceed.value = true
    #expect(world.takeRequests() == ["fetch a"])
    world.answer()
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
  }

  @Test func `A value that is invalidated during a fetch isn't fetched again without an observer`() {
    world.holdsFetches.value = true
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
    world.removeObserver("a")
    world.call { await $0.invalidate(.key("a")) }
    world.wait(seconds: 1)
    world.answer()
    #expect(world.takeRequests() == [])
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `A value that is invalidated many times during a fetch is fetched once more`() {
    world.holdsFetches.value = true
    world.observe("a", as: "a")
    for _ in 0..<100 { world.call { await $0.invalidate(.key("a")) } }
    #expect(world.takeRequests() == ["fetch a"])
    world.answer()
    #expect(world.takeRequests() == ["fetch a"])
    world.answer()
    #expect(world.takeRequests() == [])
  }

  @Test func `A refresh ends after one fetch even if its value is invalidated during the fetch`() {
    world.holdsFetches.value = true
    let hasEnded = Setting(false)
    world.call { repository in
      try? await repository.refresh("a")
      hasEnded.value = true
    }
    #expect(world.takeRequests() == ["fetch a"])
    world.call { await $0.invalidate(.key("a")) }
    world.answer()
    #expect(hasEnded.value == true)
    #expect(world.takeRequests() == [])
  }

  @Test func `A retry resumes requests while the network is reported as unavailable`() {
    world.network.status = .offline
    world.observe("a", as: "a")
    #expect(world.takeRequests() == [])
    world.call { await $0.retryNow() }
    #expect(world.takeRequests() == ["fetch a"])
    // After the retry, the network counts as available until the monitor reports `offline` again.
    world.network.status = .offline
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
    world.network.status = .online
    world.wait(seconds: 2)
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `A value whose fetch failed while offline is fetched when the network is back`() {
    world.network.status = .offline
    world.observe("a", as: "a")
    #expect(world.takeRequests() == [])
    world.fetchesSucceed.value = false
    world.call { await $0.retryNow() }
    #expect(world.takeRequests() == ["fetch a"])
    world.fetchesSucceed.value = true
    world.wait(seconds: 100)
    #expect(world.takeRequests() == [])
    world.network.status = .online
    world.wait(seconds: 2)
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 1000)
    #expect(world.takeRequests() == [])
  }

  @Test func `Even if no value is ever fresh, a request in flight is repeated only if its value is invalidated`() {
    let world = World(timeToLive: .zero)
    world.holdsFetches.value = true
    world.observe("a", as: "a")
    #expect(world.takeRequests() == ["fetch a"])
    world.activity.activity = .inactive
    #expect(world.takeRequests() == [])
    world.activity.activity = .active
    world.wait(seconds: 1)
    #expect(world.takeRequests() == [])
    world.holdsFetches.value = false
    world.answer()
    #expect(world.takeRequests() == [])
    // The first invalidation causes a request. The second comes during that request, which is therefore repeated.
    world.holdsFetches.value = true
    world.call { await $0.invalidate(.all) }
    #expect(world.takeRequests() == ["fetch a"])
    world.call { await $0.invalidate(.all) }
    #expect(world.takeRequests() == [])
    world.holdsFetches.value = false
    world.answer()
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `A cancelled call doesn't restart the interval`() {
    world.observe("a", as: "a", .whileObserved(every: .seconds(10)))
    #expect(world.takeRequests() == ["fetch a"])
    world.wait(seconds: 9)
    world.holdsFetches.value = true
    let call = world.call { try? await $0.reload("a") }
    #expect(world.takeRequests() == ["fetch a"])
    call.cancel()
    #expect(world.takeRequests() == [])
    world.holdsFetches.value = false
    world.wait(seconds: 2)
    #expect(world.takeRequests() == ["fetch a"])
  }

  @Test func `When the network is back, 200 observed values are fetched eight at a time, and a call doesn't wait`() {
    let keys = (0..<200).map { "\($0)" }
    world.network.status = .offline
    for key in keys { world.observe(key, as: key) }
    world.holdsFetches.value = true
    world.network.status = .online
    world.wait(seconds: 2)
    var requests = world.takeRequests()
    #expect(requests.count == 8)
    world.call { try? await $0.reload("199") }
    #expect(world.takeRequests() == ["fetch 199"])
    for _ in keys {
      world.answer()
      let next = world.takeRequests()
      #expect(next.count <= 1)
      requests += next
    }
    // The call has fetched the last value.
    #expect(requests == keys.dropLast().map { "fetch \($0)" })
  }

  @Test func `Requests that hang delay the others by five seconds`() {
    world.holdsFetches.value = true
    for key in (0..<10).map({ "\($0)" }) { world.observe(key, as: key) }
    #expect(world.takeRequests().count == 8)
    world.wait(seconds: 4)
    #expect(world.takeRequests() == [])
    world.wait(seconds: 1)
    #expect(world.takeRequests() == ["fetch 8", "fetch 9"])
    for _ in 0..<10 { world.answer() }
  }

  @Test func `A value whose observer leaves while its fetch waits isn't fetched`() {
    world.holdsFetches.value = true
    for key in (0..<10).map({ "\($0)" }) { world.observe(key, as: key) }
    world.removeObserver("8")
    #expect(world.takeRequests().count == 8)
    world.answer()
    #expect(world.takeRequests() == ["fetch 9"])
    world.wait(seconds: 10)
    for _ in 0..<8 { world.answer() }
    #expect(world.takeRequests() == [])
  }

  @Test func `Polling doesn't reset the backoff of mutations`() {
    world.observe("a", as: "a", .whileObserved(every: .seconds(1)))
    world.sendsSucceed.value = false
    world.call { _ = try? await $0.perform(.add("1"), on: "a") }
    world.wait(seconds: 100)
    // If the polls, one a second, reset the backoff, there would be about a hundred sends.
    #expect(world.takeRequests().count { $0 == "send a" } < 20)
  }

  @Test func `A reply to a call proves that the network is available`() {
    world.network.status = .offline
    world.observe("a", as: "a")
    world.call { _ = try? await $0.perform(.add("1"), on: "b") }
    #expect(world.takeRequests() == [])
    world.call { try? await $0.reload("b") }
    #expect(world.takeRequests() == ["fetch b", "send b", "fetch a"])
  }

  @Test func `A reply to a request that began before an invalidation doesn't make the value fresh`() async throws {
    let (gate, fetchCount) = (Gate(), Counter())
    let store = InMemoryStore()
    let repository = NotesRepository(
      NotesSource(
        fetch: { (_) async throws(NotesFailure) in
          let number = fetchCount.next()
          if number == 1 { await gate.pass() }
          return Notes("\(number)")
        }, send: { (_, _, _) throws(NotesFailure) in .done }), store: store)
    let values = repository.values(of: "a", loading: .whileObserved()).subscribe()
    await gate.arrivals()
    await repository.invalidate(.key("a"))
    gate.open()
    #expect(await values.first(2) == [Notes("1"), Notes("2")])
  }

  @Test func `A next page doesn't make a stale value fresh`() async throws {
    let cursors = Setting<[String?]>([])
    let time = Date(timeIntervalSinceReferenceDate: 0)
    let repository = SyncedRepository(
      PagesSource(sent: Gate()) { cursor in
        cursors.value.append(cursor)
        let number = cursors.value.count
        return Paged([PagesSource.Item(id: number)], nextCursor: "after \(number)")
      }, store: InMemoryStore(now: { time }), configuration: RepositoryConfiguration(now: { time }))
    try await repository.reload("a")
    await repository.invalidate(.key("a"))
    try await repository.loadMore("a")
    try await repository.refresh("a")
    try await repository.refresh("a")
    // The second newest page doesn't fit the stored pages, so another one follows it.
    #expect(cursors.value == [nil, "after 1", nil, "after 3"])
  }

  @Test func `The states of a key can be observed with a loading policy`() async throws {
    let repository = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in Notes("x") }, send: { (_, _, _) throws(NotesFailure) in .done }),
      store: InMemoryStore())
    var states: [RepositoryState<Notes, NotesError>] = []
    for await state in repository.states(of: "a", loading: .whileObserved()) {
      states.append(state)
      if state.value != nil, !state.isLoading { break }
    }
    #expect(states.first?.value == nil)
    #expect(states.contains { $0.isLoading })
    #expect(states.last?.value == Notes("x"))
  }
}

extension ManualClock {
  var date: Date { Date(timeIntervalSinceReferenceDate: Double(now.offset.components.seconds)) }
}
