internal import Multicast

/// The channels of those observers of a repository because of whom values are fetched; see ``LoadingPolicy``.
///
/// The observers of a key with the same schedule share a channel, so its release says that the last of them has left.
final class LoadingChannels<Source: RepositorySource>: Sendable {
  typealias Cell = SyncCell<Source>

  /// A key as it is observed with one schedule.
  struct Observed: Hashable, Sendable {
    let key: Source.Key
    let schedule: LoadingSchedule
  }

  let values = KeyChannels<Observed, Source.Value>()
  let states = KeyChannels<Observed, Cell.State>()
  /// The schedules with which each key is observed, in the order in which they came.
  private let schedules = Lock<[Source.Key: [LoadingSchedule]]>([:])

  /// Sends what is new of a key to the observers with a schedule from now on, unless they are gone.
  func begin(_ observed: Observed) {
    guard values.isObserved(observed) || states.isObserved(observed) else { return }
    schedules.withLock { schedules in
      if schedules[observed.key]?.contains(observed.schedule) ?? false { return }
      schedules[observed.key, default: []].append(observed.schedule)
    }
  }

  /// Whether a key is observed with a schedule.
  func isObserved(_ observed: Observed) -> Bool {
    schedules.withLock { $0[observed.key]?.contains(observed.schedule) ?? false }
  }

  /// Whether a key is observed.
  func areObserved(_ key: Source.Key) -> Bool { schedules.withLock { $0[key] != nil } }

  /// How many sequences of a key are being read.
  func observerCount(of key: Source.Key) -> Int {
    observed(key).reduce(0) { $0 + values.observerCount(of: $1) + states.observerCount(of: $1) }
  }

  /// The keys that are observed.
  var keys: [Source.Key] { schedules.withLock { Array($0.keys) } }

  private func observed(_ key: Source.Key) -> [Observed] {
    schedules.withLock { schedules in schedules[key]?.map { Observed(key: key, schedule: $0) } ?? [] }
  }

  /// Gives a new observer what there is.
  func sendFirst(_ cell: Cell, _ state: @autoclosure () -> Cell.State, to observed: Observed) {
    if let visible = cell.state.visible { values.sendFirst(visible, to: observed) }
    states.sendFirst(state(), to: observed)
  }

  func send(_ value: Source.Value, of key: Source.Key) {
    for observed in observed(key) { values.send(value, to: observed) }
  }

  func send(_ state: Cell.State, of key: Source.Key) {
    for observed in observed(key) { states.send(state, to: observed) }
  }

  /// Lets new observers of a key wait for the next value.
  func resetReplay(of key: Source.Key) {
    for observed in observed(key) { values.resetReplay(of: observed) }
  }

  /// Releases the channels whose observers are gone.
  ///
  /// - Returns: Whether the last observer with the schedule has left.
  func forgetReleased(_ observed: Observed) -> Bool {
    let isReleased = values.forgetReleased(observed)
    guard states.forgetReleased(observed), isReleased else { return false }
    return schedules.withLock { schedules in
      guard let index = schedules[observed.key]?.firstIndex(of: observed.schedule) else { return false }
      schedules[observed.key]?.remove(at: index)
      if schedules[observed.key]?.isEmpty ?? false { schedules[observed.key] = nil }
      return true
    }
  }

  /// Ends all: the repository is released.
  func finish() {
    values.finish()
    states.finish()
  }
}
