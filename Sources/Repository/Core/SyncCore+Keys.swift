internal import DataStore
internal import Foundation

extension SyncCore {
  // MARK: - Opening

  /// Opens a key: applies the pending mutations to the stored value.
  mutating func open(_ id: ID, _ stored: StoredValue<Value>?) {
    keys.open(id, stored)
    for mutation in queue.liveMutations(of: id.key) {
      let isSentHere = queue.sends(mutation)
      keys[id]?.restore(mutation, isSentHere: isSentHere)
    }
    touch(id)
  }

  /// Begins a use of a key by a call.
  mutating func use(_ id: ID) { keys[id]?.useCount += 1 }

  mutating func endUse(_ id: ID) {
    keys[id]?.useCount -= 1
    release(id)
  }

  /// Records that a use of a key has ended.
  ///
  /// An idle key stays open until enough others have become idle after it.
  mutating func release(_ id: ID) {
    for state in keys.release(id, isObserved: isObserved) { forget(state) }
    recordUse(of: id.key)
  }

  mutating func release(_ key: Key) {
    if let id = keys[key]?.id { release(id) } else { recordUse(of: key) }
  }

  private mutating func recordUse(of key: Key) {
    guard isEvicting else { return }
    evictions.recordUse(of: key, at: now.time)
    makeRoomIfNecessary()
  }

  /// Starts to make room if a limit is exceeded, or if a value will become idle and no time is set.
  ///
  /// The second case is a reason because making room sets the time.
  mutating func makeRoomIfNecessary() {
    let isNecessary = evictions.isOverLimit || (makesRoomAt == nil && evictions.nextIdleTime() != nil)
    guard isNecessary, !isMakingRoom else { return }
    isMakingRoom = true
    start(.makeRoom)
  }

  /// Releases a key whose value is to be removed.
  ///
  /// - Returns: `false` if the key is in use, so its value must stay.
  mutating func releaseUnlessInUse(_ key: Key) -> Bool {
    guard let id = keys[key]?.id else { return true }
    guard let state = keys.releaseUnlessInUse(id, isObserved: isObserved) else { return false }
    forget(state)
    return true
  }

  private mutating func forget(_ state: State) {
    endFollowing(state)
    effects.released.append(state.key)
  }

  mutating func endFollowing(_ state: State) {
    if state.isOpen { start(.endFollowing(.key(state.storeKey.keyName))) }
  }

  /// Whether a key is in use by a call, being fetched or written, or has pending mutations.
  func isInUse(_ key: Key) -> Bool { Self.isInUse(key, keys, queue) }

  private static func isInUse(_ key: Key, _ keys: KeyStates<Source>, _ queue: Queue) -> Bool {
    if let state = keys[key], !state.isIdle { return true }
    return !queue.liveMutations(of: key).isEmpty || queue.holdsMutation(of: key)
  }

  /// Whether a value must not be evicted.
  func isPinned(_ key: Key) -> Bool { capabilities.source.isPinned(key) }

  /// Takes the values to remove, except those that are in use or pinned, or kept for another reason.
  mutating func takeVictims(
    limit: Int, at time: Date, isKept: (Key) -> Bool
  ) -> [EvictionState<Key>.Victim] {
    let (keys, queue, source) = (keys, queue, capabilities.source)
    return evictions.takeVictims(at: time, limit: limit) { key in
      Self.isInUse(key, keys, queue) || source.isPinned(key) || isKept(key)
    }
  }

  /// Whether the stored value is fresh.
  func isFresh(_ state: State) -> Bool {
    guard !state.isInvalidated, state.state.base != nil, let fetchedAt = state.fetchedAt else { return false }
    return settings.freshness.isFresh(savedAt: fetchedAt, now: now.time)
  }

  // MARK: - Observed loading

  /// Starts the given requests and those that are due by now.
  mutating func fetchObserved(_ requests: [ObservedLoadingState<Key>.Request]) {
    for request in requests + loading.takeDue(at: now.elapsed) { start(.fetchObserved(request)) }
    loadsAt = loading.deadline
  }

  /// Fetches the values of the selected keys that are observed, as soon as the app is active and the network available.
  mutating func fetchObserved(invalidated selection: KeySelection<Key>) {
    fetchObserved(loading.invalidate(selection, at: now.elapsed))
  }

  /// Records a new observer with a loading policy, and fetches the value if that is due.
  mutating func beginObserving(_ key: Key, _ schedule: LoadingSchedule) {
    let age = keys[key]?.fetchedAt.flatMap { Freshness.age(savedAt: $0, now: now.time) }
    fetchObserved(loading.begin(key, schedule, lastLoad: age.map { now.elapsed - $0 }, at: now.elapsed))
  }

  mutating func endObserving(_ key: Key, _ schedule: LoadingSchedule) {
    loading.end(key, schedule, at: now.elapsed)
    fetchObserved([])
  }

  /// Records that a fetch of a key has succeeded, regardless of which call made it.
  mutating func recordLoad(of key: Key) {
    loading.recordLoad(of: key, at: now.elapsed)
    fetchObserved([])
  }

  /// Records the end of a fetch of an observed value.
  ///
  /// - Parameter mayHaveJoined: Whether a failed fetch may have joined an earlier request, such as one on a connection
  ///   that was lost.
  mutating func endFetch(
    _ request: ObservedLoadingState<Key>.Request, _ result: ObservedLoadingState<Key>.RequestResult, mayHaveJoined: Bool
  ) {
    // A failed fetch restarts the interval too.
    if case .failed = result { loading.recordLoad(of: request.key, at: now.elapsed) }
    let isStale = if case .failed = result { mayHaveJoined } else { keys[request.key]?.isInvalidated ?? false }
    fetchObserved(loading.endRequest(request, result, isStillDue: isStale, at: now.elapsed))
  }

  /// Marks values as stale, and fetches those that are observed with a loading policy.
  mutating func invalidate(_ selection: KeySelection<Key>) {
    keys.invalidate(selection, at: now.time)
    fetchObserved(invalidated: selection)
  }

  /// Records that the app has become active or inactive, or that the repository is suspended or resumed.
  mutating func updateActivity() {
    fetchObserved(loading.setActive(isActive && !suspension.isSuspended, at: now.elapsed))
  }

  mutating func setOnline(_ isOnline: Bool, isDelayed: Bool = true) {
    fetchObserved(loading.setOnline(isOnline, isDelayed: isDelayed, at: now.elapsed))
  }

  // MARK: - Network

  /// Receives a status from the network monitor.
  mutating func receive(_ status: NetworkStatus) {
    if status != network.status { emit(.networkChanged(status)) }
    switch network.receive(status) {
    case .nothing: break
    case .disconnect:
      pause(.offline)
      setOnline(false)
    case .reconnect: reconnect(isDelayed: true)
    }
  }

  /// Records that the server has answered a request, so the network is available even if the monitor reports otherwise.
  ///
  /// - Parameter count: The ``NetworkState/changeCount`` when the request began.
  mutating func recordAnswer(toRequestAfter count: Int) {
    if network.isRefuted(byAnswerAfter: count) { reconnect(isDelayed: false) }
  }

  /// Ends the backoff delays, except those that a server requested, and sends the mutations that are due.
  ///
  /// If the network counts as unavailable, also fetches observed values once the mutations have been sent. From now on,
  /// the network counts as available until the monitor reports `offline` again.
  mutating func retryNow() {
    if network.isOnline { endWaits() } else { reconnect(isDelayed: false) }
  }

  /// Considers the network available: sends mutations first, and then fetches observed values.
  ///
  /// - Parameter isDelayed: Whether the fetches are delayed at random, because other devices may have noticed the
  ///   network now too. They aren't if a call of this repository has caused them.
  private mutating func reconnect(isDelayed: Bool) {
    network.reconnect()
    queue.resume(.offline)
    endWaits()
    // No observed values are fetched until the mutations have been sent.
    setOnline(false)
    start(.fetchAfterSending(isDelayed: isDelayed, changeCount: network.changeCount))
  }

  /// Fetches observed values, unless the network's availability has changed since the reconnection.
  mutating func fetchAfterSending(isDelayed: Bool, changeCount: Int) {
    if changeCount == network.changeCount { setOnline(true, isDelayed: isDelayed) }
  }
}

/// Whether the network is available, as far as the monitor and the answers of the server show.
struct NetworkState {
  enum Change {
    case nothing, disconnect, reconnect
  }

  /// The last status that the monitor reported.
  private(set) var status = NetworkStatus.unknown
  /// Whether the network is considered available.
  private(set) var isOnline = true
  /// A number that grows with each status `offline` and each reconnection.
  private(set) var changeCount = 0

  mutating func receive(_ status: NetworkStatus) -> Change {
    let wasOffline = self.status == .offline
    self.status = status
    switch status {
    case .offline:
      changeCount += 1
      defer { isOnline = false }
      return isOnline ? .disconnect : .nothing
    // Reconnects even if an answer or a retry has set `isOnline` before, because fetches may have failed since.
    case .online, .unknown: return wasOffline ? .reconnect : .nothing
    }
  }

  /// Whether an answer to a request that began after a ``changeCount`` shows that the network is available, although it
  /// isn't considered so.
  func isRefuted(byAnswerAfter count: Int) -> Bool { !isOnline && count == changeCount }

  mutating func reconnect() {
    isOnline = true
    changeCount += 1
  }
}
