internal import Foundation

/// What a read found under a key.
enum ReadResult<Value: Codable & Sendable> {
  case nothing
  /// The bytes that are known already, whose value isn't at hand and wasn't asked for.
  case unchanged(Edition)
  case value(Edition, StoredContent<Value>)
  /// A value of a future format or schema.
  case future(StoredVersion, Fingerprint)
  /// A value of an older schema whose migration failed. It stays where it is.
  case unmigratable(Edition, MigrationFailure, bytes: Data)
  case corrupt(bytes: Data, reason: String)
  /// Something that can't be read at all, such as a folder.
  case unreadable(StoreError)

  /// The commit that wrote the value.
  var tag: StoreTag? {
    switch self {
    case .unchanged(let edition), .value(let edition, _), .unmigratable(let edition, _, _): edition.header.tag
    case .nothing, .future, .corrupt, .unreadable: nil
    }
  }

  /// What the read means for observers; `nil` for corrupt bytes, which are quarantined first.
  var found: TopicState.Found? {
    switch self {
    case .nothing: .nothing
    case .unchanged(let edition), .value(let edition, _): .value(edition)
    case .future(_, let fingerprint): .unusable(fingerprint)
    case .unmigratable(let edition, _, _): .unusable(edition.fingerprint)
    case .unreadable: .unreadable
    case .corrupt: nil
    }
  }
}

/// A decoded value, and how it is divided into parts.
struct StoredContent<Value> {
  let value: Value
  /// The number of elements in each part; `nil` if that isn't known, or the value is stored whole.
  let counts: [Int]?
  /// The size of the value's own bytes.
  let ownSize: Int
  /// The sizes of its parts, in order; none for a value that is stored whole.
  let partSizes: [Int]

  /// The size of all bytes that are stored of the value.
  var size: Int { partSizes.reduce(ownSize, +) }
}
