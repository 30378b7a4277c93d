internal import DataStore

/// Fetches values that are observed with ``LoadingPolicy/whileObserved(stopTimeout:every:)``, as
/// ``ObservedLoadingState`` decides.
///
/// Belongs to one ``SyncEngine`` and is only used in its isolation.
final class ObservedLoading<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias State = ObservedLoadingState<Source.Key>
  typealias Observed = LoadingChannels<Source>.Observed

  private let clock: ElapsedClock
  private let events: RepositoryEvents
  private let alarm: Alarm
  private var state: State
  private var isActive = true
  private var isSuspended = false

  init(_ configuration: RepositoryConfiguration, clock: ElapsedClock, events: RepositoryEvents, tasks: OwnedTasks) {
    (self.clock, self.events) = (clock, events)
    state = State(slotCount: configuration.maximumObservedFetches, random: configuration.random)
    alarm = Alarm(clock, tasks)
  }

  /// Records a new observer, and fetches the value if that is due.
  ///
  /// - Parameter age: The time since the value was fetched; `nil` if it isn't known.
  func begin(_ observed: Observed, age: Duration?, in engine: isolated Engine) {
    let now = clock.elapsed()
    perform(state.begin(observed.key, observed.schedule, lastLoad: age.map { now - $0 }, at: now), in: engine)
  }

  func end(_ observed: Observed, in engine: isolated Engine) {
    state.end(observed.key, observed.schedule, at: clock.elapsed())
    perform([], in: engine)
  }

  /// Records that a fetch of a key has succeeded, regardless of which call made it.
  func recordLoad(of key: Source.Key, in engine: isolated Engine) {
    state.recordLoad(of: key, at: clock.elapsed())
    perform([], in: engine)
  }

  func setActive(_ isActive: Bool, in engine: isolated Engine) {
    self.isActive = isActive
    perform(state.setActive(isActive && !isSuspended, at: clock.elapsed()), in: engine)
  }

  func setSuspended(_ isSuspended: Bool, in engine: isolated Engine) {
    self.isSuspended = isSuspended
    perform(state.setActive(isActive && !isSuspended, at: clock.elapsed()), in: engine)
  }

  /// Records that the network has become available or unavailable.
  ///
  /// - Parameters:
  ///   - isOnline: Whether the network is available.
  ///   - isDelayed: Whether the fetches are delayed, because other devices may have noticed the network now too.
  ///   - engine: The engine.
  func setOnline(_ isOnline: Bool, isDelayed: Bool = true, in engine: isolated Engine) {
    perform(state.setOnline(isOnline, isDelayed: isDelayed, at: clock.elapsed()), in: engine)
  }

  /// Fetches the values of the selected keys that are observed, as soon as the app is active and the network available.
  func invalidate(_ selection: KeySelection<Source.Key>, in engine: isolated Engine) {
    perform(state.invalidate(selection, at: clock.elapsed()), in: engine)
  }

  /// Fetches the values that are due by now, after the alarm has fired at `deadline`.
  func loadDue(at deadline: Duration, in engine: isolated Engine) {
    alarm.clear(deadline)
    perform([], in: engine)
  }

  /// Starts the given requests and those that are due by now, and sets the alarm for the next ones.
  private func perform(_ requests: [State.Request], in engine: isolated Engine) {
    for request in requests + state.takeDue(at: clock.elapsed()) {
      engine.start { engine in await engine.observedLoading.fetch(request, in: engine) }
    }
    alarm.set(state.deadline) { [weak engine] deadline in await engine?.loadDue(at: deadline) }
  }

  private func fetch(_ request: State.Request, in engine: isolated Engine) async {
    let key = request.key
    let mayHaveJoined = engine.cell(key)?.isLoading(engine.loader.defaultPart) ?? false
    let next: [State.Request]
    do throws(RepositoryError<Source.Failure>) {
      let wasServerAsked =
        switch request {
        case .refresh: try await engine.loader.refresh(key, nil, in: engine)
        case .reload: try await engine.loader.load(key, nil, in: engine)
        }
      let isStale = engine.cell(key)?.isInvalidated ?? false
      next = state.endRequest(
        request, wasServerAsked ? .fetched : .wasFresh, isStillDue: isStale, at: clock.elapsed())
    } catch {
      // Only the release of the repository cancels this task.
      if Task.isCancelled { return }
      // The state of an open key contains the error. If the key couldn't be opened, the failure of the store is
      // reported as an event instead.
      if case .store(let error) = error, !(engine.cell(key)?.isOpen ?? false) {
        events.emit(.storeFailed(error))
      }
      // A failed fetch restarts the interval too.
      state.recordLoad(of: key, at: clock.elapsed())
      // The fetch may have joined an earlier request, such as one on a connection that was lost.
      next = state.endRequest(request, .failed, isStillDue: mayHaveJoined, at: clock.elapsed())
    }
    perform(next, in: engine)
  }
}
