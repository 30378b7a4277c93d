internal import Foundation

/// Names a mutation for ever: across attempts, relaunches, and on the server, as its idempotency key.
///
/// Stored and sent as its text alone.
public struct MutationID: RawRepresentable, Hashable, Sendable {
  /// The idempotency key.
  public let rawValue: String

  /// Creates a new id: a random UUID in lower case.
  public init() {
    self.init(rawValue: UUID.random().uuidString.lowercased())
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

extension UUID {
  /// Returns a random UUID, version 4 of RFC 9562.
  ///
  /// On Linux `UUID()` opens and reads `/dev/urandom` each time. That takes a multiple of this: 11 µs amid other work, while
  /// observers wait for the mutation.
  fileprivate static func random() -> UUID {
    let high = UInt64.random(in: .min ... .max) & ~0xF000 | 0x4000
    let low = UInt64.random(in: .min ... .max) >> 2 | 1 << 63
    return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(uuid: $0.load(as: uuid_t.self)) }
  }
}
