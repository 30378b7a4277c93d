public import Multicast

/// A store of your own that forwards each call to another store, unless it implements the call itself.
///
/// Use it for a store that adds one thing to another one, such as a log, a delay or a limit:
///
/// ```swift
/// struct TimedStore<Base: KeyValueStore>: ForwardingStore {
///   let base: Base
///   let log: @Sendable (String) -> Void
///
///   func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
///     let start = ContinuousClock.now
///     defer { log("The load of \(key) took \(ContinuousClock.now - start).") }
///     return try await base.load(key)
///   }
/// }
/// ```
///
/// Each call is forwarded to the same call of ``base``, so a call that you implement isn't used by the others. For
/// example, a store that refuses certain changes implements all four calls that change values:
/// ``KeyValueStore/save(_:for:)``, ``KeyValueStore/remove(_:)``, ``KeyValueStore/removeAll(in:)`` and
/// ``KeyValueStore/commit(_:)``. If it should also refuse an erasure, it implements ``KeyValueStore/erase(where:)``.
///
/// `StoreConformance` in `DataStoreTesting` checks whether the store still keeps the promises of ``KeyValueStore``.
public protocol ForwardingStore: KeyValueStore {
  /// The type of the other store.
  associatedtype Base: KeyValueStore

  /// The store that receives the calls.
  var base: Base { get }
}

extension ForwardingStore {
  /// Returns the stored value of a key, or `nil` if nothing is stored.
  public func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try await base.load(key)
  }

  /// Stores a value, and sends it to every observer once it is durable.
  @discardableResult
  public func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    try await base.save(value, for: key)
  }

  /// Removes the stored value of a key, and notifies every observer.
  public func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    try await base.remove(key)
  }

  /// Removes all values of a collection in one commit, and notifies every observer.
  public func removeAll(in collection: String) async throws(StoreError) {
    try await base.removeAll(in: collection)
  }

  /// Applies several saves and removals as one change: all or none, at any instant, in every process.
  @discardableResult
  public func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try await base.commit(batch)
  }

  /// Returns the changes of one key, starting with the stored value.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try await base.changes(of: key)
  }

  /// Returns the values of a collection, and a subscription to all later changes of the collection.
  public func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await base.observe(collection: collection, as: type)
  }

  /// Creates a feed of the commits of the other store.
  public func feed() async -> any StoreFeed { await base.feed() }

  /// Whether each commit is one element of a feed of the other store.
  public var feedIsWhole: Bool { base.feedIsWhole }

  /// Erases the items that a closure selects, and leaves no byte of them in the store.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await base.erase(where: isErased)
  }

  /// Locks a name, for work that only one of several processes may do.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    try await base.acquireLock(name)
  }

  /// Suspends the other store.
  public func suspend() async {
    await base.suspend()
  }

  /// Ends a suspension of the other store.
  public func resume() async {
    await base.resume()
  }

  /// Events that concern the owner of the store, whether or not a call fails because of them.
  public var events: MulticastStream<StoreEvent, Never> { base.events }
}
