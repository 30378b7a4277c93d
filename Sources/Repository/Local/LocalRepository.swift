public import DataStore
internal import Multicast

/// Stored values that exist only on the device, with any number of observers and without lost updates.
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
  private let clock: ElapsedClock
  /// The queues of the keys with pending or running work.
  private var queues: [Key: KeyQueue] = [:]
  private var subscriptions: [Key: StoreSubscription] = [:]
  private var lastSubscriptionNumber: UInt64 = 0
  /// The repeated attempts to read the values of observed keys, by key.
  private var retries: [Key: Retry] = [:]
  private var lastRetryNumber: UInt64 = 0

  /// The queue of the work on one key, kept while any work is pending or running.
  private struct KeyQueue {
    let queue = AsyncSerialQueue()
    /// The number of pending and running pieces of work.
    var workCount = 0
  }

  /// The subscription to the stored value of a key.
  private struct StoreSubscription {
    let number: UInt64
    let cancel: @Sendable () -> Void
  }

  /// The repeated attempts to read a value that is observed and could not be read.
  private struct Retry {
    let number: UInt64
    let cancel: @Sendable () -> Void
  }

  /// Creates a repository.
  ///
  /// - Parameters:
  ///   - name: The name of the store's collection of the values. A repository of different values on the same store
  ///     needs a different name.
  ///   - defaultValue: The value of a key without a stored value.
  ///   - store: The store that keeps the values.
  public init(_ name: String, default defaultValue: Value, store: any KeyValueStore) {
    self.init(name, default: defaultValue, store: store, clock: ContinuousClock())
  }

  /// Creates a repository.
  ///
  /// - Parameters:
  ///   - name: The name of the store's collection of the values.
  ///   - defaultValue: The value of a key without a stored value.
  ///   - store: The store that keeps the values.
  ///   - clock: The clock for the delays before a value is read again.
  init(_ name: String, default defaultValue: Value, store: any KeyValueStore, clock: any Clock<Duration>) {
    self.name = name
    self.defaultValue = defaultValue
    self.store = store
    self.clock = ElapsedClock(clock)
  }

  deinit {
    channels.finish()
  }

  /// The values of a key: the present value first, as soon as the store was read, then every later one.
  ///
  /// While the store can't be read, for example because the device is locked, the repository tries again after the
  /// delays of the default ``RetryPolicy``.
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
    let stored = try await store.load(storeKey(key))
    // The store can be read again.
    if retries[key] != nil { tasks.start { [weak self] in await self?.observe(key) } }
    return stored?.value ?? defaultValue
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
    return try await runInTurn(on: key) { () async throws(StoreError) in
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
    try await runInTurn(on: key) { () async throws(StoreError) in try await store.remove(storeKey(key)) }
  }

  private func storeKey(_ key: Key) -> StoreKey<Value> { StoreKey(name, id: key is OnlyKey ? nil : key.storeID) }

  /// Runs work on a key after all earlier work on it, so that no update of this repository makes the precondition of
  /// another one fail.
  ///
  /// If the key is observed, subscribes to its stored value before the work begins, so that observers get the results
  /// of the work. An existing subscription is kept if the present observers have got a value. Otherwise, it was made
  /// for observers that have left since, and only a new subscription sends the present value.
  private func runInTurn<Result, Failure: Error>(
    on key: Key, _ work: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    var keyQueue = queues[key] ?? KeyQueue()
    keyQueue.workCount += 1
    queues[key] = keyQueue
    defer {
      queues[key]?.workCount -= 1
      if queues[key]?.workCount == 0 { queues[key] = nil }
    }
    return try await keyQueue.queue.run { () async throws(Failure) in
      if channels.isObserved(key), subscriptions[key] == nil || !channels.hasReplay(of: key) {
        await subscribe(to: key)
      }
      return try await work()
    }
  }

  // MARK: - Observing

  private func observe(_ key: Key) async {
    // Subscribes before the work, which is empty here.
    await runInTurn(on: key) {}
  }

  /// Subscribes to the stored value of a key, and sends the present value and every later one to its observers.
  private func subscribe(to key: Key) async {
    endSubscription(of: key)
    do throws(StoreError) {
      // Subscribed before the load, so that no change is missed. A change that the load already includes has no newer
      // revision.
      let changes = try await store.changes(of: storeKey(key)).subscribe()
      let stored: StoredValue<Value>?
      let isReadable: Bool
      do throws(StoreError) {
        (stored, isReadable) = (try await store.load(storeKey(key)), true)
      } catch {
        guard case .undecodable(_, movedTo: nil, _) = error else { throw error }
        // Observers get no value, and not the default value either, until a change that can be decoded.
        (stored, isReadable) = (nil, false)
      }
      endRetry(of: key)
      // The last observer may have left during the load.
      guard channels.isObserved(key) else { return }
      if isReadable { channels.sendFirst(stored?.value ?? defaultValue, to: key) }
      let revision = stored?.revision ?? 0
      lastSubscriptionNumber += 1
      let number = lastSubscriptionNumber
      let cancel = tasks.start { [weak self] in
        for await change in changes where change.revision > revision { await self?.receive(change, key, number) }
      }
      subscriptions[key] = StoreSubscription(number: number, cancel: cancel)
    } catch {
      // While the store can't be read, an update throws the error of its own read.
      readLater(key, after: error)
    }
  }

  /// Starts to read an observed value again, unless that is in progress or would always fail.
  ///
  /// The next call for the key also tries again.
  private func readLater(_ key: Key, after error: StoreError) {
    guard retries[key] == nil, error.mayEnd, channels.isObserved(key) else { return }
    lastRetryNumber += 1
    let number = lastRetryNumber
    // The task doesn't keep the repository alive while it waits.
    let cancel = tasks.start { [weak self, clock] in
      var attempt = 1
      while let delay = await self?.delay(ofRetry: number, of: key, afterAttempt: attempt) {
        await clock.wait(until: clock.elapsed() + delay)
        if Task.isCancelled { return }
        await self?.observe(key)
        attempt += 1
      }
    }
    retries[key] = Retry(number: number, cancel: cancel)
  }

  /// Returns the delay before the next attempt to read a value; `nil` if there are no further attempts.
  private func delay(ofRetry number: UInt64, of key: Key, afterAttempt attempt: Int) -> Duration? {
    guard retries[key]?.number == number else { return nil }
    guard channels.isObserved(key) else {
      retries[key] = nil
      return nil
    }
    var generator = SystemRandomNumberGenerator()
    return RetryPolicy().delay(forAttempt: attempt, using: &generator)
  }

  private func endRetry(of key: Key) {
    retries.removeValue(forKey: key)?.cancel()
  }

  private func receive(_ change: StoreChange<Value>, _ key: Key, _ number: UInt64) {
    // An earlier subscription may deliver a change that the present one has already delivered.
    guard subscriptions[key]?.number == number else { return }
    channels.send(change.stored?.value ?? defaultValue, to: key)
  }

  private func endSubscription(of key: Key) {
    subscriptions.removeValue(forKey: key)?.cancel()
  }

  private func endObserving(_ key: Key) {
    guard channels.forgetReleased(key) else { return }
    endSubscription(of: key)
    endRetry(of: key)
  }
}
