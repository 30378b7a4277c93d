/// The one iteration of a base sequence: started for the first subscriber, stopped after the last.
///
/// Two locks are taken together, this one's first and then the channel's.
final class Upstream<Base: AsyncSequence & Sendable>: Sendable where Base.Element: Sendable {
  typealias Core = ChannelCore<Base.Element, Base.Failure>

  /// An iteration of the base, and the channel it sends to.
  ///
  /// It stays when the base has ended, so that late subscribers get the replay and the end.
  private struct Iteration {
    let core: Core
    /// Nil until it has been started.
    var task: Task<Void, Never>?
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

  /// Registers a subscriber, then starts the iteration if there is none.
  func subscribe(
    _ policy: BufferingPolicy<Base.Failure>
  ) -> MulticastSubscription<Base.Element, Base.Failure>.AsyncIterator {
    let (core, reader, isFirst) = iteration.withLock { iteration in
      let isFirst = iteration == nil
      let core = iteration?.core ?? Core(replay: replay, onUnused: { [weak self] core in self?.stop(core) })
      if isFirst { iteration = Iteration(core: core) }
      return (core, ChannelReader(core: core, policy: policy), isFirst)
    }
    // Outside the lock, because both may run the base, which is foreign code, at once.
    if isFirst { start(core) } else { core.signalDemand() }
    return .init(reader: reader)
  }

  private func start(_ core: Core) {
    let task = iterate(core)
    // The base may have yielded already, and its last subscriber left by its own overflow.
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
      do throws(Base.Failure) {
        for try await element in base {
          core.send(element)
          // The last subscriber may have left, also by its own overflow, which is noticed only here.
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

  /// Forgets an iteration without subscribers, unless the base has ended or a new subscriber was registered.
  private func stop(_ core: Core) {
    let unused = iteration.withLock { iteration -> Iteration? in
      guard iteration?.core === core, core.isUnused else { return nil }
      return iteration.take()
    }
    unused?.task?.cancel()
  }
}
