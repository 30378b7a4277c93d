internal import Foundation

/// The result of reading a key.
enum ReadResult<Value: Codable & Sendable> {
  case nothing
  /// The last known bytes, whose decoded value isn't in memory and wasn't needed.
  case unchanged(Edition)
  case value(Edition, StoredContent<Value>)
  /// A value of a future format or schema.
  case future(StoredVersion, Fingerprint)
  /// A value of an older schema whose migration failed. It is left untouched.
  case unmigratable(Edition, MigrationFailure, bytes: Data)
  case corrupt(bytes: Data, reason: String)
  /// An entry that can't be read at all, such as a folder in place of a file.
  case unreadable(StoreError)

  /// The tag of the commit that wrote the value.
  var tag: StoreTag? {
    switch self {
    case .unchanged(let edition), .value(let edition, _), .unmigratable(let edition, _, _): edition.header.tag
    case .nothing, .future, .corrupt, .unreadable: nil
    }
  }

  /// The state that the read has found; `nil` for corrupt bytes, which are quarantined first.
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
  /// The number of elements in each part; `nil` if it is unknown or the value is stored whole.
  let counts: [Int]?
  /// The size of the value's own bytes.
  let ownSize: Int
  /// The sizes of its parts, in order; empty for a value that is stored whole.
  let partSizes: [Int]

  /// The total size of the stored bytes of the value.
  var size: Int { partSizes.reduce(ownSize, +) }
}
