internal import DataStore
internal import Foundation
internal import Multicast

/// What is observed, but could not be read from the store, for example because the device was locked.
///
/// It is read again with the delays of the ``RetryPolicy``, until the store can be read or there are no observers.
/// Ending the backoff delays ends the wait, and a call that opens a key ends the observation of that key.
struct UnreadObservation {
  let number: UInt64
  /// The error of the last attempt.
  var error: StoreError
  let cancel: @Sendable () -> Void
}

extension SyncEngine {
  typealias Observed = LoadingChannels<Source>.Observed

  enum Observation: Hashable {
    /// The value, the state or the pending mutations of a key.
    case key(Key)
    /// The stored value of a key, for the observers of the whole repository.
    case storedValue(Key)
    /// The keys of all stored values, for the observers of the whole repository.
    case everyValue
  }

  // MARK: - Opening

  /// Opens a key unless it is open: reads the stored value, which becomes the base, and applies the pending mutations.
  ///
  /// - Throws: ``RepositoryError/store(_:)``, or ``RepositoryError/signedOut`` if the key's user has signed out.
  private func open(_ key: Key) async throws(Failure) -> ID {
    let id: ID?
    do throws(StoreError) {
      id = try await openUnlessSignedOut(key)
    } catch {
      throw .store(error)
    }
    guard let id else { throw .signedOut }
    return id
  }

  /// Opens a key as ``open(_:)`` does, or returns `nil` if its user has signed out.
  func openUnlessSignedOut(_ key: Key) async throws(StoreError) -> ID? {
    if let state = core.keys[key], state.isOpen { return state.id }
    let storeKey = StoreKey<Value>(name, id: key.storeID)
    try storeKey.validate()
    try await start()
    await waitWhileRemoving(key)
    guard core.isOpen(key.userID) else { return nil }
    let id = core.keys.add(key, storeKey, core.capabilities)
    do throws(StoreError) {
      try await read(id, storeKey)
    } catch {
      let state = core.keys[id]
      core.keys.removeUnopened(id)
      // The error may name a key of a user who has signed out meanwhile, and must then not be reported. Nor does it
      // matter if another call has opened the key meanwhile.
      if let state, !state.isOpen { throw error }
    }
    guard core.keys[id] != nil else { return nil }
    endReading(key)
    return id
  }

  /// Reads the base of a key from the store, unless that has been done.
  private func read(_ id: ID, _ storeKey: StoreKey<Value>) async throws(StoreError) {
    let opening = openings[id.key] ?? AsyncSerialQueue()
    openings[id.key] = opening
    core.keys[id]?.useCount += 1
    defer { core.keys[id]?.useCount -= 1 }
    try await opening.run { () async throws(StoreError) in
      defer { if core.keys[id]?.isOpen ?? true { openings[id.key] = nil } }
      while let state = core.keys[id], !state.isOpen {
        let part = StoreFeedPart.key(storeKey.keyName)
        try await follow(storeKey)
        guard let state = core.keys[id] else { return endFollowing(part) }
        if state.isOpen || tasks.areCancelled { return }
        // This program can't use what is stored. The load says why.
        do throws(StoreError) {
          let stored = try await load(storeKey)
          if core.keys[id]?.isOpen ?? false { return }
          if stored == nil { return update { $0.open(id, nil) } }
        } catch {
          if core.keys[id]?.isOpen ?? false { return }
          endFollowing(part)
          throw error
        }
        endFollowing(part)
      }
    }
  }

  /// Opens a key for a call, and keeps it until ``endUse(_:)``.
  func use(_ key: Key) async throws(Failure) -> ID {
    let id = try await open(key)
    core.use(id)
    return id
  }

  func endUse(_ id: ID) {
    core.now = moment
    core.endUse(id)
    if core.hasEffects { update { _ in } }
  }

  /// Returns the visible value of a key, or `nil` if there is none.
  ///
  /// - Throws: The errors of ``open(_:)``.
  func value(of key: Key) async throws(Failure) -> Value? {
    let id = try await open(key)
    defer { update { $0.release(id) } }
    return core.keys[id]?.state.visible
  }

  /// Returns the current state of a key.
  func state(of key: Key) async -> RepositoryState<Value, Failure> {
    do throws(Failure) {
      let id = try await open(key)
      defer { update { $0.release(id) } }
      return core.keys[id]?.currentState(core.capabilities.paging) ?? RepositoryState(failure: .signedOut)
    } catch {
      return RepositoryState(failure: error)
    }
  }

  // MARK: - Observing

  /// Sends the current value, state and pending mutations of a key to its new observers.
  func observe(_ key: Key) async {
    do throws(Failure) {
      let id = try await open(key)
      if let state = core.keys[id] { channels.sendFirst(state) }
      update { $0.release(id) }
    } catch {
      channels.sendFailure(error, to: key)
      readLater(.key(key), after: error)
    }
  }

  /// Releases the resources of observers that no longer exist.
  func endObserving(_ key: Key) {
    channels.forgetReleased(key)
    removeUnlessObserved(.key(key))
    update { $0.release(key) }
  }

  /// Sends the current value and state to a new observer with a loading policy, and fetches the value if that is due.
  func observe(_ observed: Observed) async {
    let (key, loadingChannels) = (observed.key, channels.loading)
    loadingChannels.begin(observed)
    do throws(Failure) {
      let id = try await open(key)
      if let state = core.keys[id] { channels.sendFirst(state, to: observed) }
      update { $0.release(id) }
    } catch {
      loadingChannels.states.send(RepositoryState(failure: error), to: observed)
      readLater(.key(key), after: error)
    }
    if loadingChannels.isObserved(observed) { update { $0.beginObserving(key, observed.schedule) } }
  }

  /// Releases the resources of observers that no longer exist.
  func endObserving(_ observed: Observed) {
    let isLast = channels.loading.forgetReleased(observed)
    removeUnlessObserved(.key(observed.key))
    update { core in
      if isLast { core.endObserving(observed.key, observed.schedule) }
      core.release(observed.key)
    }
  }

  /// Reads a user's stored data again, because changes that were reported before the sign-in were ignored.
  ///
  /// Sends the user's values to the existing observers, and fetches those that are observed with a loading policy.
  func reopen(_ user: UserDigest) {
    if newestValue.isObservingStore { start { engine in await engine.openStored(of: user) } }
    for key in channels.observedKeys where UserDigest(key.userID) == user {
      start { engine in await engine.observeAgain(key) }
    }
  }

  private func observeAgain(_ key: Key) async {
    await observe(key)
    update { $0.fetchObserved(invalidated: .key(key)) }
  }

  // MARK: - Every value

  func observeEveryValue() async {
    do throws(StoreError) {
      try await openEveryValue()
    } catch {
      readLater(.everyValue, after: .store(error))
    }
  }

  func endObservingEveryValue() {
    newestValue.endObserving()
    for observation in unread.keys { removeUnlessObserved(observation) }
  }

  /// Opens every stored key unless the newest value is known, and later each key whose stored value changes.
  ///
  /// - Throws: A `StoreError` if the stored keys can't be listed. The call can then be repeated.
  private func openEveryValue() async throws(StoreError) {
    guard !newestValue.isObservingStore else { return }
    newestValue.isObservingStore = true
    do throws(StoreError) {
      try await start()
      let observation = try await store.observe(collection: name, as: Value.self)
      // An observer that has the newest value doesn't need older ones.
      if !newestValue.isKnown {
        for entry in observation.stored { await openForEveryValue(entry.key) }
      }
      let changes = observation.changes
      newestValue.endWatching = tasks.start { [weak self] in
        for await commit in changes {
          for change in commit { await self?.openForEveryValue(change.key) }
        }
      }
    } catch {
      newestValue.isObservingStore = false
      throw error
    }
  }

  /// Opens the stored keys of a user who has signed in, because changes that were reported before the sign-in were
  /// ignored.
  private func openStored(of user: UserDigest) async {
    await keepTrying { () async throws(StoreError) in
      guard newestValue.isObserved else { return }
      let stored = try await store.observe(collection: name, as: Value.self).stored
      for entry in stored where user.owns(entry.key, as: Key.self) { await openForEveryValue(entry.key) }
    }
  }

  /// Opens a stored key, so that the observers of the whole repository receive its value.
  private func openForEveryValue(_ storeKey: StoreKey<Value>) async {
    guard let key = storeKey.id.flatMap({ Key(storeID: $0) }) else { return }
    do throws(StoreError) {
      try await openStored(key)
    } catch {
      readLater(.storedValue(key), after: .store(error))
    }
  }

  private func openStored(_ key: Key) async throws(StoreError) {
    guard let id = try await openUnlessSignedOut(key) else { return }
    core.keys.edit(id) { newestValue.sendStored(&$0) }
    update { $0.release(id) }
  }

  // MARK: - Unread observations

  /// Reports that something observed could not be read, and reads it later, if the reason is a failure of the store.
  private func readLater(_ observation: Observation, after error: Failure) {
    guard case .store(let error) = error else { return }
    events.emit(.storeFailed(error))
    guard unread[observation] == nil, error.mayEnd, isObserved(observation) else { return }
    lastUnread += 1
    let cancel = start { [lastUnread] engine in await engine.readAgain(observation, lastUnread) }
    unread[observation] = UnreadObservation(number: lastUnread, error: error, cancel: cancel)
  }

  /// Records that a key was opened.
  ///
  /// Opening it has sent the value to the observers. If it is observed with a loading policy, it is fetched now unless
  /// it is fresh, because the fetch that was due for the first observer has failed too.
  private func endReading(_ key: Key) {
    guard unread[.key(key)] != nil else { return }
    unread.removeValue(forKey: .key(key))?.cancel()
    update { $0.fetchObserved(invalidated: .key(key)) }
  }

  /// Stops reading an observation that no longer has observers.
  private func removeUnlessObserved(_ observation: Observation) {
    if unread[observation] != nil, !isObserved(observation) { unread.removeValue(forKey: observation)?.cancel() }
  }

  private func isObserved(_ observation: Observation) -> Bool {
    switch observation {
    case .key(let key): channels.isObserved(key)
    case .storedValue, .everyValue: newestValue.isObserved
    }
  }

  private func readAgain(_ observation: Observation, _ number: UInt64) async {
    var attempt = 1
    while true {
      await wait(afterAttempt: attempt)
      if Task.isCancelled { return }
      // The task of the observer that left last may not have run yet.
      removeUnlessObserved(observation)
      guard unread[observation]?.number == number else { return }
      attempt += 1
      do throws(StoreError) {
        switch observation {
        case .key(let key): if let id = try await openUnlessSignedOut(key) { update { $0.release(id) } }
        case .storedValue(let key): try await openStored(key)
        case .everyValue: try await openEveryValue()
        }
        if unread[observation]?.number == number { unread.removeValue(forKey: observation)?.cancel() }
        return
      } catch {
        events.emit(.storeFailed(error))
        guard unread[observation]?.number == number, unread[observation]?.error != error else { continue }
        unread[observation]?.error = error
        if case .key(let key) = observation { channels.sendChangedFailure(.store(error), to: key) }
      }
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
