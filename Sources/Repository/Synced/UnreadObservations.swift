internal import DataStore

/// What is observed, but could not be read from the store, for example because the device was locked.
///
/// Each observation is read again with the delays of the ``RetryPolicy``, until the store can be read or there are no
/// observers. ``Backoff/endWaits()`` ends the delays, and a call that opens a key ends the observation of that key.
///
/// Belongs to one ``SyncEngine`` and is only used in its isolation.
final class UnreadObservations<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Key = Source.Key

  enum Observation: Hashable {
    /// The value, the state or the pending mutations of a key.
    case key(Key)
    /// The stored value of a key, for the observers of the whole repository.
    case storedValue(Key)
    /// The keys of all stored values, for the observers of the whole repository.
    case everyValue
  }

  /// The repeated attempts to read an observation.
  private struct Retry {
    let number: UInt64
    /// The error of the last attempt.
    var error: StoreError
    let cancel: @Sendable () -> Void
  }

  private let events: RepositoryEvents
  private var retries: [Observation: Retry] = [:]
  private var lastNumber: UInt64 = 0

  init(events: RepositoryEvents) {
    self.events = events
  }

  /// Starts to read an observation again, unless that is in progress or would always fail.
  func add(_ observation: Observation, after error: StoreError, in engine: isolated Engine) {
    guard retries[observation] == nil, error.mayEnd, isObserved(observation, in: engine) else { return }
    lastNumber += 1
    let number = lastNumber
    let cancel = engine.start { engine in await engine.unread.retry(observation, number, in: engine) }
    retries[observation] = Retry(number: number, error: error, cancel: cancel)
  }

  /// Records that a key was opened.
  ///
  /// Opening it has sent the value to the observers. If it is observed with a loading policy, it is fetched now unless
  /// it is fresh, because the fetch that was due for the first observer has failed too.
  func endReading(_ key: Key, in engine: isolated Engine) {
    guard retries[.key(key)] != nil else { return }
    remove(.key(key))
    engine.observedLoading.invalidate(.key(key), in: engine)
  }

  /// Stops reading an observation that no longer has observers.
  func removeUnlessObserved(_ observation: Observation, in engine: isolated Engine) {
    if retries[observation] != nil, !isObserved(observation, in: engine) { remove(observation) }
  }

  /// Stops reading all observations that no longer have observers.
  func removeUnobserved(in engine: isolated Engine) {
    for observation in retries.keys { removeUnlessObserved(observation, in: engine) }
  }

  private func remove(_ observation: Observation) {
    retries.removeValue(forKey: observation)?.cancel()
  }

  private func isObserved(_ observation: Observation, in engine: isolated Engine) -> Bool {
    switch observation {
    case .key(let key): engine.channels.isObserved(key)
    case .storedValue, .everyValue: engine.newestValue.isObserved
    }
  }

  private func retry(_ observation: Observation, _ number: UInt64, in engine: isolated Engine) async {
    var attempt = 1
    while true {
      await engine.backoff.wait(afterAttempt: attempt)
      if Task.isCancelled { return }
      // The task of the observer that left last may not have run yet.
      removeUnlessObserved(observation, in: engine)
      guard retries[observation]?.number == number else { return }
      attempt += 1
      do throws(StoreError) {
        try await read(observation, in: engine)
        if retries[observation]?.number == number { remove(observation) }
        return
      } catch {
        events.emit(.storeFailed(error))
        guard retries[observation]?.number == number, retries[observation]?.error != error else { continue }
        retries[observation]?.error = error
        if case .key(let key) = observation { engine.channels.sendChangedFailure(.store(error), to: key) }
      }
    }
  }

  private func read(_ observation: Observation, in engine: isolated Engine) async throws(StoreError) {
    switch observation {
    case .key(let key):
      if let cell = try await engine.openUnlessSignedOut(key) { engine.release(cell) }
    case .storedValue(let key): try await engine.newestValue.open(key, in: engine)
    case .everyValue: try await engine.newestValue.observe(in: engine)
    }
  }
}

extension StoreError {
  /// Whether the same read may succeed later.
  var mayEnd: Bool {
    switch self {
    case .invalidKey, .collectionHasAnotherType: false
    default: true
    }
  }
}
