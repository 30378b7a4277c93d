/// A base sequence whose subscribers share one iteration, from the first subscriber until the last one leaves.
///
/// Lock order: the `iteration` lock is taken first, and the channel's lock inside it, never the other way round.
final class Upstream<Base: AsyncSequence & Sendable>: Sendable where Base.Element: Sendable {
  typealias Core = ChannelCore<Base.Element, Base.Failure>

  /// An iteration of the base, and the channel it sends to.
  ///
  /// It stays after the base has terminated, so that late subscribers receive the replay and the completion or error.
  private struct Iteration {
    let core: Core
    /// The iterating task, or `nil` until the call that started it has stored it here.
    var task: Task<Void, Never>?
  }

  /// A registered subscriber of an iteration.
  private struct Registration {
    let core: Core
    let subscriber: ChannelSubscriber<Base.Element, Base.Failure>
    /// Whether the iteration has yet to be started.
    let isFirst: Bool
  }

  private let base: Base
  private let replay: Int
  private let iteration = Lock<Iteration?>(nil)

  init(_ base: Base, replay: Int) {
    precondition(replay >= 0, "'replay' must be at least 0, but is \(replay).")
    self.base = base
    self.replay = replay
  }

  deinit {
    iteration.withLock { $0 }?.task?.cancel()
  }

  /// Registers a subscriber, then starts an iteration if there is none, and returns the subscriber's iterator.
  ///
  /// If the base has terminated, its iteration is still stored, so the subscriber receives the replay and then the
  /// completion or error.
  func subscribe(
    _ policy: BufferingPolicy<Base.Failure>
  ) -> MulticastSubscription<Base.Element, Base.Failure>.AsyncIterator {
    let registration = iteration.withLock { iteration in
      let isFirst = iteration == nil
      let core = iteration?.core ?? Core(replay: replay, onUnused: { [weak self] core in self?.stopIfUnused(core) })
      if isFirst { iteration = Iteration(core: core) }
      return Registration(core: core, subscriber: ChannelSubscriber(core: core, policy: policy), isFirst: isFirst)
    }
    // Outside the lock, because during either call an executor may run the iterating task, and with it user code of the
    // base.
    if registration.isFirst { startTask(for: registration.core) } else { registration.core.signalDemand() }
    return .init(subscriber: registration.subscriber)
  }

  /// Starts the iterating task, and stores it in the iteration of `core`, or cancels it if that was already stopped.
  private func startTask(for core: Core) {
    let task = makeTask(sendingTo: core)
    // The iteration may have been stopped already, because the base's first elements overflowed the last subscriber.
    let isStopped = iteration.withLock { iteration in
      guard iteration?.core === core else { return true }
      iteration?.task = task
      return false
    }
    if isStopped { task.cancel() }
  }

  private func makeTask(sendingTo core: Core) -> Task<Void, Never> {
    let base = base
    return Task {
      // Even the first element needs demand, because a subscriber without capacity accepts none until it suspends.
      await core.demand()
      if Task.isCancelled { return }
      do throws(Base.Failure) {
        for try await element in base {
          core.send(element)
          // The element may have overflowed the last subscriber. Unlike `cancel` and `remove`, `send` doesn't check
          // that itself.
          core.noticeIfUnused()
          await core.demand()
          if Task.isCancelled { return }
        }
        core.finish()
      } catch {
        core.finish(error)
      }
    }
  }

  /// Cancels and discards the iteration of `core`, unless the base has terminated or a subscriber has registered in the
  /// meantime.
  private func stopIfUnused(_ core: Core) {
    let unusedIteration = iteration.withLock { iteration -> Iteration? in
      guard iteration?.core === core, core.isUnused else { return nil }
      return iteration.take()
    }
    unusedIteration?.task?.cancel()
  }
}
