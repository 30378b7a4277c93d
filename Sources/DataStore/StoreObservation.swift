public import Multicast

/// All users' values of one name, and every later change of them, without a gap or a duplicate between the two.
public struct StoreObservation<Value: Codable & Sendable>: Sendable {
  /// One user's value.
  public struct Entry: Sendable {
    /// Whose value it is.
    public let key: StoreKey<Value>

    /// What was stored when the observation began.
    public let stored: StoredValue<Value>

    /// Creates an entry, for a store of your own.
    public init(key: StoreKey<Value>, stored: StoredValue<Value>) {
      self.key = key
      self.stored = stored
    }
  }

  /// What was stored when the observation began, in the order it was saved.
  public let stored: [Entry]

  /// Every change since, of any user, in one order.
  ///
  /// Nothing is dropped.
  public let changes: MulticastSubscription<StoreChange<Value>, Never>

  /// Creates an observation, for a store of your own.
  ///
  /// - Parameters:
  ///   - stored: What is stored, in the order it was saved.
  ///   - changes: A subscription that was registered in the same step.
  public init(stored: [Entry], changes: MulticastSubscription<StoreChange<Value>, Never>) {
    self.stored = stored
    self.changes = changes
  }
}

extension StoreObservation.Entry: Equatable where Value: Equatable {}
