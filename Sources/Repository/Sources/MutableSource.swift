/// A source whose values the app can change.
public protocol MutableSource: RepositorySource {
  // Redeclared, so that the types are inferred from `send(_:to:id:)`.
  associatedtype Key
  associatedtype Value
  associatedtype Failure
  associatedtype Mutation

  /// The value that a mutation is applied to if nothing is stored.
  ///
  /// The default is `nil`: if nothing is stored, a mutation becomes visible only once a value is stored.
  static var empty: Value? { get }

  /// Sends a mutation to the server.
  ///
  /// - Parameters:
  ///   - mutation: The mutation to send.
  ///   - key: The key of the value that the mutation changes.
  ///   - id: The idempotency key, which is the same for all attempts. A server that has already applied the mutation
  ///     must not apply it again.
  func send(_ mutation: Mutation, to key: Key, id: MutationID) async throws(Failure) -> MutationReply<Value>

  /// Returns the name of the mutation's lane.
  ///
  /// Mutations of the same lane are sent one after the other in the order in which they were made. Mutations of
  /// different lanes may be sent concurrently. Lanes of different users are separate, even if they have the same name.
  /// The function must always return the same name for the same mutation and key. The default implementation returns
  /// the `storeID` of the key.
  func orderingKey(of mutation: Mutation, on key: Key) -> String
}

extension MutableSource {
  /// `nil`: if nothing is stored, a mutation becomes visible only once a value is stored.
  public static var empty: Value? { nil }

  /// Returns the `storeID` of the key.
  public func orderingKey(of mutation: Mutation, on key: Key) -> String { key.storeID }
}

/// A change of a value: it is applied optimistically, sent, and kept durably until the stored value includes it.
public protocol RepositoryMutation<Value>: Codable, Sendable {
  /// The type of the value that the mutation changes.
  associatedtype Value

  /// Changes a value as the server will change it.
  ///
  /// The function must be pure, because it is called again for every new value of the server. It must have no further
  /// effect on a value that already has the change. Once the repository has accepted the server's reply to the
  /// mutation, it doesn't apply the mutation again. It can't accept the reply if, for example, a fetched value arrived
  /// while the mutation was in flight. It then applies the mutation until it accepts a whole value that was requested
  /// after the reply arrived, and doesn't apply it to that value.
  ///
  /// - Throws: A ``MutationConflict`` if the change isn't possible on this value.
  func apply(to value: inout Value) throws(MutationConflict)
}

/// The error of a mutation that isn't possible on a value.
public struct MutationConflict: Error, Codable, Hashable, Sendable {
  /// A description of the conflict, for a user interface or a log.
  public let reason: String

  /// Creates a conflict.
  public init(_ reason: String) {
    self.reason = reason
  }
}

extension MutationConflict: CustomStringConvertible {
  /// The reason.
  public var description: String { reason }
}

/// A server's reply to a mutation that it has applied.
public enum MutationReply<Value: Sendable>: Sendable {
  /// The whole value, including the change.
  case value(Value)

  /// The change as the server made it, to be applied to the stored value instead of the mutation's `apply(to:)`.
  ///
  /// If nothing is stored, the value is fetched.
  case patch(@Sendable (inout Value) -> Void)

  /// The server made the same change as the mutation's `apply(to:)`.
  ///
  /// If nothing is stored and the mutation was applied to ``MutableSource/empty``, the value is fetched. If nothing is
  /// stored and `empty` is `nil`, the reply stores nothing.
  case done

  /// The server has applied the mutation, but its reply has no value that can be read.
  ///
  /// Nothing is stored, and the next mutation of the lane may be sent. The mutation stays applied on top of the stored
  /// value until a whole value that was requested after the reply is accepted. The repository fetches that value.
  case withoutValue
}

/// The mutation type of a read-only source.
///
/// It has no values.
public enum NoMutation<Value>: RepositoryMutation {
  /// Always throws, because the type has no values.
  public init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(
      .init(codingPath: decoder.codingPath, debugDescription: "A read-only source has no mutations."))
  }

  /// Never called.
  public func encode(to encoder: any Encoder) throws {
    switch self {}
  }

  /// Never called.
  public func apply(to value: inout Value) throws(MutationConflict) {
    switch self {}
  }
}
