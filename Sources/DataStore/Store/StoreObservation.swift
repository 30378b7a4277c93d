public import Multicast

/// The values of a collection, and all later changes, without a gap or a duplicate between the two.
public struct StoreObservation<Value: Codable & Sendable>: Sendable {
  /// A key of the collection with its stored value.
  public struct Entry: Sendable {
    /// The key of the value.
    public let key: StoreKey<Value>

    /// The value that was stored when the observation began.
    public let stored: StoredValue<Value>

    /// Creates an entry, for your own implementation of a store.
    public init(key: StoreKey<Value>, stored: StoredValue<Value>) {
      self.key = key
      self.stored = stored
    }
  }

  /// The values that were stored when the observation began, sorted by revision, then by the time of the save.
  public let stored: [Entry]

  /// Every later change of the collection, in order.
  ///
  /// The changes of one commit are one element, in the order of its batch. External changes that the store notices
  /// together are one element too, in the order of their commits if the medium knows that order. If the store watches
  /// its medium, an observer therefore has, after each element, the collection as it was stored at one instant. If the
  /// store doesn't watch, an external change is noticed only by the next call for its key or for the collection. No
  /// element is dropped, however slow the subscriber is. The subscription finishes when the store is released.
  public let changes: MulticastSubscription<[StoreChange<Value>], Never>

  /// Creates an observation, for your own implementation of a store.
  ///
  /// - Parameters:
  ///   - stored: The stored values, sorted by revision, then by the time of the save.
  ///   - changes: A subscription to all later changes, registered in the same step in which the values were read.
  public init(stored: [Entry], changes: MulticastSubscription<[StoreChange<Value>], Never>) {
    self.stored = stored
    self.changes = changes
  }
}

extension StoreObservation.Entry: Equatable where Value: Equatable {}
