internal import Foundation

/// Names a mutation for ever: across attempts, relaunches, and on the server, as its idempotency key.
///
/// Stored and sent as its text alone.
public struct MutationID: RawRepresentable, Hashable, Sendable {
  /// The idempotency key.
  public let rawValue: String

  /// Creates a new id: a UUID in lower case.
  public init() {
    self.init(rawValue: UUID().uuidString.lowercased())
  }

  /// Creates an id of a text, which must be a possible user id of a store key: not empty, and not too long.
  public init(rawValue: String) {
    self.rawValue = rawValue
  }
}

extension MutationID: Codable {}

extension MutationID: CustomStringConvertible {
  /// The idempotency key.
  public var description: String { rawValue }
}
