public import DataStore
internal import Multicast

/// Values that only the device has: kept, observed by any number of screens, and changed without losing a change.
///
/// ```swift
/// let drafts = LocalRepository<String, Draft>("drafts", default: Draft(), store: store)
/// try await drafts.update(postID) { $0.text = "On the river" }
/// for await draft in drafts.values(of: postID) { show(draft) }
/// ```
///
/// Where nothing is stored, the default value is shown, and nothing is written for it.
///
/// - **Ordering**: Updates of a key are made one after the other, also those of other processes: each starts from what is
///   stored, and none is lost. Observers see them in that order.
/// - **Durability**: An update is durable before its call returns and before it is shown.
/// - **Cancellation** doesn't interrupt an update.
/// - **Lifetime**: What is observed doesn't keep the repository alive, and ends when it is released.
public actor LocalRepository<Key: RepositoryKey, Value: Codable & Equatable & Sendable> {
  private let name: String
  private let defaultValue: Value
  private let store: any KeyValueStore
  private let channels = KeyChannels<Key, Value>()
  private let tasks = OwnedTasks(executor: nil)
  /// The work on a key that is being done or waits for its turn.
  private var turns: [Key: Turns] = [:]
  private var observations: [Key: Observation] = [:]
  private var lastObservation: UInt64 = 0

  /// The line of one key, which is kept while anything is in it.
  private struct Turns {
    let queue = AsyncSerialQueue()
    var count = 0
  }

  /// The watch of a key.
  private struct Observation {
    let number: UInt64
    let end: @Sendable () -> Void
  }

  /// Creates a repository.
  ///
  /// - Parameters:
  ///   - name: The collection of the values in the store. No other repository of the store may have the name.
  ///   - defaultValue: What is shown where nothing is stored.
  ///   - store: Where values are kept.
  public init(_ name: String, default defaultValue: Value, store: any KeyValueStore) {
    self.name = name
    self.defaultValue = defaultValue
    self.store = store
  }

  deinit {
    channels.finish()
  }

  /// The values of a key: the present one first, then every later one, those of other processes included.
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
  /// A change that leaves the value as it is writes nothing, and observers don't see it.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - change: Changes the value. It is called again, on the newer value, if another process was faster.
  /// - Returns: What `change` returned.
  /// - Throws: A `StoreError`; then the value is what it was.
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

  /// Removes the value of a key: observers see the default value.
  ///
  /// - Throws: A `StoreError`; then the value is what it was.
  public func remove(_ key: Key) async throws(StoreError) {
    try await inTurn(key) { () async throws(StoreError) in try await store.remove(storeKey(key)) }
  }

  private func storeKey(_ key: Key) -> StoreKey<Value> { StoreKey(name, id: key is OnlyKey ? nil : key.storeID) }

  /// Runs work on a key behind all that came before, so that updates don't fail each other's preconditions.
  ///
  /// The key is watched before the work begins if it is observed, so that observers see what the work changes.
  private func inTurn<Result, Failure: Error>(
    _ key: Key, _ work: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    var line = turns[key] ?? Turns()
    line.count += 1
    turns[key] = line
    defer {
      turns[key]?.count -= 1
      if turns[key]?.count == 0 { turns[key] = nil }
    }
    return try await line.queue.run { () async throws(Failure) in
      if channels.isObserved(key), observations[key] == nil || !channels.hasReplay(of: key) { await watch(key) }
      return try await work()
    }
  }

  // MARK: - Observing

  private func observe(_ key: Key) async {
    await inTurn(key) {}
  }

  /// Sends the present value of a key to its observers, and every later one.
  private func watch(_ key: Key) async {
    endWatch(of: key)
    do throws(StoreError) {
      // Registered first, so that no change is missed. What the change repeats has no newer revision.
      let changes = try await store.changes(of: storeKey(key)).subscribe()
      let stored = try await store.load(storeKey(key))
      // Otherwise the observers are gone.
      guard channels.isObserved(key) else { return }
      channels.sendFirst(stored?.value ?? defaultValue, to: key)
      let revision = stored?.revision ?? 0
      lastObservation += 1
      let number = lastObservation
      let end = tasks.start { [weak self] in
        for await change in changes where change.revision > revision { await self?.receive(change, key, number) }
      }
      observations[key] = Observation(number: number, end: end)
    } catch {
      // The next update tries again, and its caller gets the error if that fails too.
    }
  }

  private func receive(_ change: StoreChange<Value>, _ key: Key, _ number: UInt64) {
    // A watch that has ended may have had this change already.
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
