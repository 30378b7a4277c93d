/// The shared iteration of a base sequence, which starts with the first subscriber and stops after the last one.
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

  /// Registers a subscriber, then starts an iteration if there is none.
  ///
  /// An iteration whose base has terminated stays, so the subscriber then receives its replay and its termination.
  func subscribe(
    _ policy: BufferingPolicy<Base.Failure>
  ) -> MulticastSubscription<Base.Element, Base.Failure>.AsyncIterator {
    let registration = iteration.withLock { iteration in
      let isFirst = iteration == nil
      let core = iteration?.core ?? Core(replay: replay, onUnused: { [weak self] core in self?.stop(core) })
      if isFirst { iteration = Iteration(core: core) }
      return Registration(core: core, subscriber: ChannelSubscriber(core: core, policy: policy), isFirst: isFirst)
    }
    // Outside the lock, because either call may run the base, which is user code, before it returns.
    if registration.isFirst { start(registration.core) } else { registration.core.signalDemand() }
    return .init(subscriber: registration.subscriber)
  }

  private func start(_ core: Core) {
    let task = iterate(core)
    // The iteration may be over already: the base may have yielded, and the element overflowed the last subscriber.
    let isStopped = iteration.withLock { iteration in
      guard iteration?.core === core else { return true }
      iteration?.task = task
      return false
    }
    if isStopped { task.cancel() }
  }

  private func iterate(_ core: Core) -> Task<Void, Never> {
    let base = base
    return Task {
      // A subscriber without capacity doesn't accept the first element before it suspends.
      await core.demand()
      if Task.isCancelled { return }
      do throws(Base.Failure) {
        for try await element in base {
          core.send(element)
          // An overflow may have ended the last subscriber. Unlike a cancellation, it is detected only here.
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

  /// Cancels and discards an iteration without subscribers, unless the base has terminated or a new subscriber was
  /// registered.
  private func stop(_ core: Core) {
    let unused = iteration.withLock { iteration -> Iteration? in
      guard iteration?.core === core, core.isUnused else { return nil }
      return iteration.take()
    }
    unused?.task?.cancel()
  }
}
