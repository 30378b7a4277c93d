public import Multicast

/// The values of a collection, and every later change of them, with no gap and no duplicate between the two.
public struct StoreObservation<Value: Codable & Sendable>: Sendable {
  /// One value of the collection.
  public struct Entry: Sendable {
    /// The key of the value.
    public let key: StoreKey<Value>

    /// The value as it was stored when the observation began.
    public let stored: StoredValue<Value>

    /// Creates an entry, for a store of your own.
    public init(key: StoreKey<Value>, stored: StoredValue<Value>) {
      self.key = key
      self.stored = stored
    }
  }

  /// The values that were stored when the observation began, in the order in which they were saved.
  public let stored: [Entry]

  /// Every later change of the collection, in one order.
  ///
  /// The changes of one commit are one element, in the order of its batch. External changes that the store notices
  /// together are one element too, in commit order as far as the medium knows it: so after each element an observer has
  /// the collection as it was stored at one instant. Nothing is dropped.
  public let changes: MulticastSubscription<[StoreChange<Value>], Never>

  /// Creates an observation, for a store of your own.
  ///
  /// - Parameters:
  ///   - stored: The stored values, in the order in which they were saved.
  ///   - changes: A subscription that was registered in the same step.
  public init(stored: [Entry], changes: MulticastSubscription<[StoreChange<Value>], Never>) {
    self.stored = stored
    self.changes = changes
  }
}

extension StoreObservation.Entry: Equatable where Value: Equatable {}
