/// A durable change of one stored value.
public enum StoreChange<Value: Codable & Sendable>: Sendable {
  /// A value was saved.
  case saved(StoreKey<Value>, StoredValue<Value>)

  /// The value was removed.
  case removed(StoreKey<Value>, revision: UInt64)

  /// The key whose value changed.
  public var key: StoreKey<Value> {
    switch self {
    case .saved(let key, _), .removed(let key, _): key
    }
  }

  /// The position of the change in the order of the store's changes; see ``StoredValue/revision``.
  public var revision: UInt64 {
    switch self {
    case .saved(_, let stored): stored.revision
    case .removed(_, let revision): revision
    }
  }

  /// The value that is stored after the change; `nil` after a removal.
  public var stored: StoredValue<Value>? {
    switch self {
    case .saved(_, let stored): stored
    case .removed: nil
    }
  }
}

extension StoreChange: Equatable where Value: Equatable {}
extension StoreChange: Hashable where Value: Hashable {}
