internal import DataStore
internal import Multicast

/// The suspensions of a repository, as ``SuspensionState`` decides them.
struct SuspensionWork {
  /// The time for which attempts in flight are waited for before they are cancelled.
  static var maximumAttemptTime: Duration { .seconds(2) }

  /// The time in which a cancelled attempt should end.
  static var maximumCancellationTime: Duration { .milliseconds(500) }

  fileprivate let store: StoreUse
  /// Whether the repository runs, or is about to.
  fileprivate var isRunning = true
  /// Keeps suspending and resuming in order.
  fileprivate let transitions = AsyncSerialQueue()

  init(_ store: any KeyValueStore) {
    self.store = StoreUse(store)
  }
}

extension SyncEngine {
  func suspend() async {
    core.suspension.suspend()
    await updateSuspension()
  }

  func resume() async {
    core.suspension.resume()
    await updateSuspension()
  }

  func receive(_ activity: AppActivity) async {
    core.isActive = activity == .active
    core.suspension.receive(activity)
    await updateSuspension()
  }

  /// Suspends or resumes the repository if that is necessary.
  private func updateSuspension() async {
    update { $0.updateActivity() }
    await suspension.transitions.run {
      guard core.suspension.isRunning != suspension.isRunning else { return }
      suspension.isRunning = core.suspension.isRunning
      if suspension.isRunning { await startSending() } else { await stopSending() }
    }
  }

  private func startSending() async {
    await suspension.store.resume()
    update { core in
      core.hasLeftAttempts = false
      core.queue.resume(.suspended)
      core.emit(.resumed)
    }
  }

  /// Stops sending, and gives the lead up.
  ///
  /// Ends early if the repository is to run again.
  private func stopSending() async {
    update { $0.pause(.suspended) }
    await wait(until: clock.elapsed() + SuspensionWork.maximumAttemptTime) { core in
      core.suspension.isRunning || core.queue.isSettled && !core.lead.isTrying && !core.isStarting
    }
    if core.suspension.isRunning { return }
    for (_, cancel) in attempts.sorted(by: { $0.key < $1.key }) { cancel() }
    await wait(until: clock.elapsed() + SuspensionWork.maximumCancellationTime) { core in
      core.suspension.isRunning || core.attempts.isEmpty
    }
    if core.suspension.isRunning { return }
    for id in update({ $0.leaveAttempts() }) { await save(id) }
    await surrenderLead()
    if core.suspension.isRunning { return }
    await suspension.store.suspend()
    events.emit(.suspended)
  }

  // MARK: - Draining

  /// Sends mutations until none can be sent, for a limited time, and then suspends the repository again if it was.
  func drain(within duration: Duration) async -> DrainResult {
    let deadline = clock.elapsed() + max(duration, .zero)
    let drain = core.suspension.beginDrain()
    start { engine in await engine.begin(drain) }
    await wait(until: deadline) { core in core.result(of: drain, within: deadline) != nil }
    let result = update { core in
      core.result(of: drain, within: deadline)
        ?? (core.drains[drain] == nil || Task.isCancelled
          ? .remaining(core.queue.liveCount) : core.queue.unfinishedDrainResult)
    }
    core.suspension.endDrain(drain)
    core.drains[drain] = nil
    await updateSuspension()
    return result
  }

  private func begin(_ drain: UInt64) async {
    await updateSuspension()
    let beginning: Result<Void, StoreError>
    do throws(StoreError) {
      beginning = .success(try await start())
    } catch {
      beginning = .failure(error)
    }
    update { core in if core.suspension.isDraining(drain) { core.drains[drain] = beginning } }
  }
}
