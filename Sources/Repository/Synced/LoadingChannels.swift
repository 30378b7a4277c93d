internal import Multicast

/// The channels of the observers with the policy ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
///
/// All observers with the same key and the same schedule share a channel of values and a channel of states. Both
/// channels are released once the last of these observers is gone.
final class LoadingChannels<Source: RepositorySource>: Sendable {
  typealias State = RepositoryState<Source.Value, RepositoryError<Source.Failure>>

  /// A key that is observed with a schedule.
  struct Observed: Hashable, Sendable {
    let key: Source.Key
    let schedule: LoadingSchedule
  }

  let values = KeyChannels<Observed, Source.Value>()
  let states = KeyChannels<Observed, State>()
  /// The schedules with which each key is observed, in the order in which they were added.
  private let schedules = Lock<[Source.Key: [LoadingSchedule]]>([:])

  /// Starts sending the changes of a key to the observers with a schedule, unless they are gone.
  func begin(_ observed: Observed) {
    guard values.isObserved(observed) || states.isObserved(observed) else { return }
    schedules.withLock { schedules in
      if schedules[observed.key]?.contains(observed.schedule) ?? false { return }
      schedules[observed.key, default: []].append(observed.schedule)
    }
  }

  /// Returns whether a key is observed with a schedule.
  func isObserved(_ observed: Observed) -> Bool {
    schedules.withLock { $0[observed.key]?.contains(observed.schedule) ?? false }
  }

  /// Returns whether a key is observed with any schedule.
  func isObserved(_ key: Source.Key) -> Bool { schedules.withLock { $0[key] != nil } }

  /// Returns the number of iterators and subscriptions of a key.
  func observerCount(of key: Source.Key) -> Int {
    keyWithEachSchedule(key).reduce(0) { $0 + values.observerCount(of: $1) + states.observerCount(of: $1) }
  }

  /// The keys that are observed with any schedule.
  var keys: [Source.Key] { schedules.withLock { Array($0.keys) } }

  /// Returns a key with each schedule with which it is observed.
  private func keyWithEachSchedule(_ key: Source.Key) -> [Observed] {
    schedules.withLock { schedules in schedules[key]?.map { Observed(key: key, schedule: $0) } ?? [] }
  }

  /// Sends the visible value, if any, and the current state to the observers of a key with a schedule.
  ///
  /// A channel that already replays an element is skipped.
  func sendFirst(_ keyState: KeyState<Source>, _ currentState: @autoclosure () -> State, to observed: Observed) {
    if let visible = keyState.state.visible { values.sendFirst(visible, to: observed) }
    states.sendFirst(currentState(), to: observed)
  }

  func send(_ value: Source.Value, of key: Source.Key) {
    for observed in keyWithEachSchedule(key) { values.send(value, to: observed) }
  }

  func send(_ state: State, of key: Source.Key) {
    for observed in keyWithEachSchedule(key) { states.send(state, to: observed) }
  }

  /// Stops replaying the current value of a key to new observers.
  func resetReplay(of key: Source.Key) {
    for observed in keyWithEachSchedule(key) { values.resetReplay(of: observed) }
  }

  /// Removes the channels that were released because they have no observers.
  ///
  /// - Returns: Whether this call ends the observation of the key with the schedule.
  func forgetReleased(_ observed: Observed) -> Bool {
    let isValueChannelReleased = values.forgetReleased(observed)
    guard states.forgetReleased(observed), isValueChannelReleased else { return false }
    return schedules.withLock { schedules in
      guard let index = schedules[observed.key]?.firstIndex(of: observed.schedule) else { return false }
      schedules[observed.key]?.remove(at: index)
      if schedules[observed.key]?.isEmpty ?? false { schedules[observed.key] = nil }
      return true
    }
  }

  /// Finishes all channels, because the repository is released.
  func finish() {
    values.finish()
    states.finish()
  }
}
