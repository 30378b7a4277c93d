/// What is stored, whose it is, and of which type.
///
/// Declare a key once and hand it to every call, so that what is read is what was written:
///
/// ```swift
/// extension StoreKey where Value == Timeline {
///   static func timeline(of userID: String) -> Self { Self("timeline", userID: userID) }
/// }
/// ```
///
/// Within one store a name stands for one type; see ``StoreError/keyHasAnotherType(name:existing:requested:)``. Any
/// text is a good name or user id unless it is empty or too long, which every store refuses with
/// ``StoreError/invalidKey(_:)``.
public struct StoreKey<Value: Codable & Sendable>: Hashable, Sendable {
  /// The key without its type, as errors and events name it.
  public let keyName: StoreKeyName

  /// What is stored.
  public var name: String { keyName.name }

  /// Whose it is; nil for a value that belongs to no user.
  public var userID: String? { keyName.userID }

  /// Creates a key.
  ///
  /// - Parameters:
  ///   - name: What is stored.
  ///   - userID: Whose it is; nil for a value that belongs to no user. Each user has a value of their own.
  public init(_ name: String, userID: String? = nil) {
    self.init(StoreKeyName(name, userID: userID))
  }

  /// Creates the key of a name that is already there.
  public init(_ keyName: StoreKeyName) {
    self.keyName = keyName
  }
}

extension StoreKey: CustomStringConvertible {
  /// The name, and the user where there is one.
  public var description: String { keyName.description }
}
