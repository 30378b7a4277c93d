/// The key of a stored value, with the type of the value.
///
/// A key consists of a collection and, if the collection has more than one value, an id within it. Declare a key once
/// and use it in every call, so that a value is always read and written as the same type:
///
/// ```swift
/// extension StoreKey where Value == Inbox {
///   static func inbox(of userID: String) -> Self { Self("inbox", id: userID) }
/// }
/// ```
///
/// Within one store, all values of a collection must have the same type; see
/// ``StoreError/collectionHasAnotherType(collection:existing:requested:)``. A collection or id may be any text that
/// isn't empty. An id may have up to ``StoreKeyName/maximumIDLength`` bytes, and a collection up to
/// ``StoreKeyName/maximumEncodedLength`` in its encoded form, or 134 beside an id that makes the encoded name longer
/// than that. ``validate()`` checks a key before other work depends on it.
public struct StoreKey<Value: Codable & Sendable>: Hashable, Sendable {
  /// The key without its type, as it appears in errors and events.
  public let keyName: StoreKeyName

  /// The collection of the value.
  public var collection: String { keyName.collection }

  /// The id of the value within its collection; `nil` for the only value of a collection.
  public var id: String? { keyName.id }

  /// Creates a key.
  ///
  /// - Parameters:
  ///   - collection: The collection of the value.
  ///   - id: The id of the value within its collection; `nil` for the only value of a collection.
  public init(_ collection: String, id: String? = nil) {
    self.init(StoreKeyName(collection, id: id))
  }

  /// Creates a key from its name.
  public init(_ keyName: StoreKeyName) {
    self.keyName = keyName
  }

  /// Checks that a store can keep a value under this key.
  ///
  /// Every method of a store that takes a key makes the same check. Call this method before work whose result will be
  /// saved, such as a request to a server.
  ///
  /// - Throws: ``StoreError/invalidKey(_:)``.
  public func validate() throws(StoreError) {
    _ = try keyName.encoded()
  }
}

extension StoreKey: CustomStringConvertible {
  /// The collection, and the id if there is one.
  public var description: String { keyName.description }
}
