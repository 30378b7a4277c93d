/// A source whose values the app changes.
public protocol MutableSource: RepositorySource {
  // Declared again, so that they are inferred from `send`.
  associatedtype Key
  associatedtype Value
  associatedtype Failure
  associatedtype Mutation

  /// What a mutation is applied to where nothing is stored.
  ///
  /// The default implementation returns `nil`: there a mutation shows once something is stored.
  static var empty: Value? { get }

  /// Sends a mutation to the server.
  ///
  /// - Parameters:
  ///   - mutation: The change.
  ///   - key: The value it changes.
  ///   - id: The idempotency key, the same for all attempts. A server that has applied the mutation before must not apply
  ///     it again.
  func send(_ mutation: Mutation, to key: Key, id: MutationID) async throws(Failure) -> MutationReply<Value>

  /// Returns the lane of a mutation.
  ///
  /// Mutations of one lane are sent one after the other in the order they were made, and those of different lanes side by
  /// side. The default implementation returns the `storeID` of the key. The lane of a mutation never changes.
  func orderingKey(of mutation: Mutation, on key: Key) -> String
}

extension MutableSource {
  /// `nil`: a mutation shows once something is stored.
  public static var empty: Value? { nil }

  /// Returns the `storeID` of the key.
  public func orderingKey(of mutation: Mutation, on key: Key) -> String { key.storeID }
}

/// A change of a value: shown at once, kept until the server has it, and sent.
public protocol RepositoryMutation<Value>: Codable, Sendable {
  /// What it changes.
  associatedtype Value

  /// Makes a value what it will be when the server has the mutation.
  ///
  /// The function is pure, and is run again over every new value of the server. On a value that already has the change it
  /// has no further effect. Where the repository can know, because a reply was accepted or a fetch began after the
  /// confirmation, it never applies a mutation twice.
  ///
  /// - Throws: A ``MutationConflict`` if the change isn't possible on this value.
  func apply(to value: inout Value) throws(MutationConflict)
}

/// Why a mutation isn't possible on a value.
public struct MutationConflict: Error, Codable, Hashable, Sendable {
  /// What is in the way, for a user interface or a log.
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

/// What a server answered to a mutation that it has made.
public enum MutationReply<Value: Sendable>: Sendable {
  /// The whole value with the change.
  case value(Value)

  /// The change as the server made it, for the stored value. It takes the place of the mutation's `apply(to:)`.
  case patch(@Sendable (inout Value) -> Void)

  /// What the mutation's `apply(to:)` does is what the server did.
  ///
  /// Where nothing is stored, nothing is, unless the mutation shows on ``MutableSource/empty``: then the value is fetched.
  case done
}

/// The mutation of a source that is only read.
///
/// There is none.
public enum NoMutation<Value>: RepositoryMutation {
  /// Always throws, because there is nothing to decode.
  public init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(
      .init(codingPath: decoder.codingPath, debugDescription: "A source that is only read has no mutations."))
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
