public import DataStore
internal import Multicast

/// Values that exist only on the device: stored, observed by any number of subscribers, and updated without lost
/// updates.
///
/// ```swift
/// let drafts = LocalRepository<String, Draft>("drafts", default: Draft(), store: store)
/// try await drafts.update(postID) { $0.text = "On the river" }
/// for await draft in drafts.values(of: postID) { show(draft) }
/// ```
///
/// If nothing is stored, observers get the default value, and nothing is written.
///
/// - **Ordering**: Updates of a key are made one at a time, across processes. Each starts from the stored value, and
///   none is lost. Observers get the values in the order of the updates.
/// - **Durability**: An update is durable before its call returns and before observers get it.
/// - **Cancellation**: Cancelling a caller doesn't interrupt its update.
/// - **Lifetime**: Observation doesn't keep the repository alive, and ends when the repository is released.
public actor LocalRepository<Key: RepositoryKey, Value: Codable & Equatable & Sendable> {
  private let name: String
  private let defaultValue: Value
  private let store: any KeyValueStore
  private let channels = KeyChannels<Key, Value>()
  private let tasks = OwnedTasks(executor: nil)
  /// The queues of the keys with pending or running work.
  private var queues: [Key: KeyQueue] = [:]
  private var observations: [Key: ObservedKey] = [:]
  private var lastObservation: UInt64 = 0

  /// The work on one key, kept while any of it is pending or running.
  private struct KeyQueue {
    let queue = AsyncSerialQueue()
    var count = 0
  }

  /// The subscription to the stored value of a key.
  private struct ObservedKey {
    let number: UInt64
    let end: @Sendable () -> Void
  }

  /// Creates a repository.
  ///
  /// - Parameters:
  ///   - name: The collection of the values in the store. A repository of different values on the same store needs a
  ///     different name.
  ///   - defaultValue: The value of a key without a stored value.
  ///   - store: The store that keeps the values.
  public init(_ name: String, default defaultValue: Value, store: any KeyValueStore) {
    self.name = name
    self.defaultValue = defaultValue
    self.store = store
  }

  deinit {
    channels.finish()
  }

  /// The values of a key: the present value first, then every later one.
  ///
  /// Of the values that another process stores, an observer may get only the newest.
  public nonisolated func values(of key: Key) -> ObservedValues<Value> {
    ObservedValues { [weak self] in
      guard let self else { return finishedStream() }
      return channels.stream(of: key) {
        tasks.start { [weak self] in await self?.observe(key) }
      } onClose: { [weak self] in
        self?.tasks.start { [weak self] in await self?.endObserving(key) }
      }
    }
  }

  /// Returns the value of a key.
  ///
  /// - Throws: A `StoreError` if it can't be read.
  public func value(of key: Key) async throws(StoreError) -> Value {
    try await store.load(storeKey(key))?.value ?? defaultValue
  }

  /// Changes the value of a key.
  ///
  /// If the change leaves the value as it is, nothing is written, and observers get nothing.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - change: The change. It is called again, on the present value, if another repository or process has stored or
  ///     removed the value meanwhile.
  /// - Returns: The result of `change`.
  /// - Throws: A `StoreError`. The value is then unchanged, unless the outcome is unknown or the stored bytes were
  ///   quarantined, as `StoreError` describes.
  public func update<Result: Sendable>(
    _ key: Key, _ change: @Sendable (inout Value) -> Result
  ) async throws(StoreError) -> Result {
    let storeKey = storeKey(key)
    return try await inTurn(key) { () async throws(StoreError) in
      while true {
        let stored = try await store.load(storeKey)
        var value = stored?.value ?? defaultValue
        let result = change(&value)
        if value == stored?.value ?? defaultValue { return result }
        var batch = StoreBatch()
        batch.save(value, for: storeKey)
        batch.require(stored?.tag, of: storeKey)
        do throws(StoreError) {
          try await store.commit(batch)
          return result
        } catch {
          guard case .preconditionFailed = error else { throw error }
        }
      }
    }
  }

  /// Removes the value of a key.
  ///
  /// If a value was stored, observers get the default value.
  ///
  /// - Throws: A `StoreError`. The value is then unchanged, with the same exceptions as for ``update(_:_:)``.
  public func remove(_ key: Key) async throws(StoreError) {
    try await inTurn(key) { () async throws(StoreError) in try await store.remove(storeKey(key)) }
  }

  private func storeKey(_ key: Key) -> StoreKey<Value> { StoreKey(name, id: key is OnlyKey ? nil : key.storeID) }

  /// Runs work on a key after all earlier work on it, so that no update of this repository makes the precondition of
  /// another one fail.
  ///
  /// If the key is observed, subscribes to its stored value before the work begins, so that observers get the results
  /// of the work.
  private func inTurn<Result, Failure: Error>(
    _ key: Key, _ work: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    var keyQueue = queues[key] ?? KeyQueue()
    keyQueue.count += 1
    queues[key] = keyQueue
    defer {
      queues[key]?.count -= 1
      if queues[key]?.count == 0 { queues[key] = nil }
    }
    return try await keyQueue.queue.run { () async throws(Failure) in
      if channels.isObserved(key), observations[key] == nil || !channels.hasReplay(of: key) { await watch(key) }
      return try await work()
    }
  }

  // MARK: - Observing

  private func observe(_ key: Key) async {
    await inTurn(key) {}
  }

  /// Sends the present value of a key, and every later one, to its observers.
  private func watch(_ key: Key) async {
    endWatch(of: key)
    do throws(StoreError) {
      // Subscribed before the load, so that no change is missed. A change that the load already includes has no newer
      // revision.
      let changes = try await store.changes(of: storeKey(key)).subscribe()
      let stored = try await store.load(storeKey(key))
      // Otherwise the last observer has left.
      guard channels.isObserved(key) else { return }
      channels.sendFirst(stored?.value ?? defaultValue, to: key)
      let revision = stored?.revision ?? 0
      lastObservation += 1
      let number = lastObservation
      let end = tasks.start { [weak self] in
        for await change in changes where change.revision > revision { await self?.receive(change, key, number) }
      }
      observations[key] = ObservedKey(number: number, end: end)
    } catch {
      // The next update or removal of the key tries again. So does the first observer after all present ones have left.
      // While the store can't be read, an update throws the error of its own read.
    }
  }

  private func receive(_ change: StoreChange<Value>, _ key: Key, _ number: UInt64) {
    // An earlier subscription may deliver a change that the present one has already delivered.
    guard observations[key]?.number == number else { return }
    channels.send(change.stored?.value ?? defaultValue, to: key)
  }

  private func endWatch(of key: Key) {
    observations.removeValue(forKey: key)?.end()
  }

  private func endObserving(_ key: Key) {
    if channels.forgetReleased(key) { endWatch(of: key) }
  }
}
