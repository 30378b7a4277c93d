internal import Foundation

/// The id of a mutation, the same across attempts and relaunches, and its idempotency key on the server.
///
/// It is encoded as a single string.
public struct MutationID: RawRepresentable, Hashable, Sendable {
  /// The idempotency key.
  public let rawValue: String

  /// Creates a new id: a random UUID in lower case.
  public init() {
    self.init(rawValue: UUID.random().uuidString.lowercased())
  }

  /// Creates an id from text, which must be valid as the id of a store key; see `StoreKey.validate()`.
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
  /// A new mutation becomes visible to observers only when it has an id, so the id must be made quickly. On Linux,
  /// `UUID()` opens and reads `/dev/urandom` each time. On a busy machine, that takes 11 µs, several times as long as
  /// this function.
  fileprivate static func random() -> UUID {
    // Sets the version to 4 in the high half, and the variant to binary 10 in the low half.
    let high = UInt64.random(in: .min ... .max) & ~0xF000 | 0x4000
    let low = UInt64.random(in: .min ... .max) >> 2 | 1 << 63
    return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(uuid: $0.load(as: uuid_t.self)) }
  }
}
