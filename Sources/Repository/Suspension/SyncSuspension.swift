internal import DataStore
internal import Multicast

/// Suspends and resumes a repository, as ``SuspensionState`` decides, and performs drains.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class SyncSuspension<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>

  /// The time for which attempts in flight are waited for before they are cancelled.
  private static var maximumAttemptTime: Duration { .seconds(2) }

  /// The time in which a cancelled attempt should end.
  private static var maximumCancellationTime: Duration { .milliseconds(500) }

  private let clock: ElapsedClock
  private let events: RepositoryEvents
  private let store: StoreUse
  private var state = SuspensionState()
  /// Whether the repository runs, or is about to.
  private var isRunning = true
  /// Whether attempts that still go on no longer matter, because their outcomes are stored as unknown.
  private(set) var hasLeftAttempts = false
  /// The drains that have resumed the repository and read the queue, or could not read it.
  private var beginnings: [UInt64: Result<Void, StoreError>] = [:]
  /// Keeps suspending and resuming in order.
  private let transitions = AsyncSerialQueue()
  /// Has an element for each step that someone here may wait for.
  private let steps = CurrentValueRelay(())

  init(_ store: any KeyValueStore, clock: ElapsedClock, events: RepositoryEvents) {
    self.store = StoreUse(store)
    (self.clock, self.events) = (clock, events)
  }

  /// Records that an attempt ended, or that the queue or the lead has changed.
  func recordStep() { steps.send(()) }

  func suspend(in engine: isolated Engine) async {
    state.suspend()
    await update(in: engine)
  }

  func resume(in engine: isolated Engine) async {
    state.resume()
    await update(in: engine)
  }

  func receive(_ activity: AppActivity, in engine: isolated Engine) async {
    state.receive(activity)
    await update(in: engine)
  }

  /// Suspends or resumes the repository if that is necessary.
  private func update(in engine: isolated Engine) async {
    recordStep()
    engine.observedLoading.setSuspended(state.isSuspended, in: engine)
    await transitions.run {
      guard state.isRunning != isRunning else { return }
      isRunning = state.isRunning
      if isRunning { await start(in: engine) } else { await stop(in: engine) }
    }
  }

  private func start(in engine: isolated Engine) async {
    await store.resume()
    hasLeftAttempts = false
    engine.queue.resume(.suspended)
    events.emit(.resumed)
    engine.sender.pump(in: engine)
  }

  /// Stops sending, and gives the lead up.
  ///
  /// Ends early if the repository is to run again.
  private func stop(in engine: isolated Engine) async {
    engine.performer.pause(.suspended, in: engine)
    await wait(until: clock.elapsed() + Self.maximumAttemptTime, in: engine) { engine in
      engine.suspension.state.isRunning
        || engine.queue.isSettled && !engine.election.isTrying && !engine.isStarting
    }
    if state.isRunning { return }
    engine.sender.cancelAttempts()
    await wait(until: clock.elapsed() + Self.maximumCancellationTime, in: engine) { engine in
      engine.suspension.state.isRunning || engine.sender.attemptsInFlight == 0
    }
    if state.isRunning { return }
    hasLeftAttempts = true
    await engine.performer.leaveAttempts(in: engine)
    await engine.election.surrender(in: engine)
    if state.isRunning { return }
    await store.suspend()
    events.emit(.suspended)
  }

  /// Waits until a condition holds, a deadline passes, or the calling task is cancelled.
  private func wait(
    until deadline: Duration, in engine: isolated Engine, for condition: @escaping @Sendable (isolated Engine) -> Bool
  ) async {
    if condition(engine) { return }
    await clock.wait(until: deadline) { [weak engine, steps = steps.stream] in
      for await _ in steps {
        guard let engine, await !engine.holds(condition) else { return }
      }
    }
  }

  // MARK: - Draining

  /// Sends mutations until none can be sent, for a limited time, and then suspends the repository again if it was.
  func drain(within duration: Duration, in engine: isolated Engine) async -> DrainResult {
    let deadline = clock.elapsed() + max(duration, .zero)
    let drain = state.beginDrain()
    engine.start { engine in await engine.suspension.begin(drain, in: engine) }
    await wait(until: deadline, in: engine) { engine in
      engine.suspension.result(of: drain, within: deadline, in: engine) != nil
    }
    let result = result(of: drain, within: deadline, in: engine) ?? resultAtDeadline(of: drain, in: engine)
    state.endDrain(drain)
    beginnings[drain] = nil
    await update(in: engine)
    return result
  }

  private func begin(_ drain: UInt64, in engine: isolated Engine) async {
    await update(in: engine)
    let beginning: Result<Void, StoreError>
    do throws(StoreError) {
      beginning = .success(try await engine.start())
    } catch {
      beginning = .failure(error)
    }
    if state.isDraining(drain) { beginnings[drain] = beginning }
    recordStep()
  }

  /// The result of a drain that has reached its end; `nil` if there is still something to wait for.
  private func result(of drain: UInt64, within deadline: Duration, in engine: isolated Engine) -> DrainResult? {
    // The repository was suspended.
    guard state.isDraining(drain) else { return engine.queue.unfinishedDrainResult }
    switch beginnings[drain] {
    case nil: return nil
    case .failure(let error): return .paused(.store(error))
    case .success: return engine.queue.drainResult(at: engine.moment, within: deadline)
    }
  }

  private func resultAtDeadline(of drain: UInt64, in engine: isolated Engine) -> DrainResult {
    beginnings[drain] == nil || Task.isCancelled
      ? .remaining(engine.queue.liveCount) : engine.queue.unfinishedDrainResult
  }
}
