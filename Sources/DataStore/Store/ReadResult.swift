internal import Foundation

/// The result of reading a key.
enum ReadResult<Value: Codable & Sendable> {
  /// No bytes are stored.
  case nothing
  /// The bytes are the last known ones, and the caller didn't need the value.
  case unchanged(Edition)
  /// A decoded value.
  case value(Edition, StoredContent<Value>)
  /// A value of a future format or schema.
  ///
  /// It is identified by a hash of its bytes. Its header may not be readable, so it has no edition.
  case future(StoredVersion, Fingerprint)
  /// A value whose migration failed, or that was stored in parts and has no migration to a whole value.
  ///
  /// It is left untouched until a save, which quarantines `bytes`, or a removal.
  case unmigratable(Edition, MigrationFailure, bytes: Data)
  /// Bytes that can't be decoded, or a value with missing or changed parts.
  case corrupt(bytes: Data, reason: String)
  /// An entry that can't be read at all, such as a folder in place of a file.
  ///
  /// Returned by ``Slot/readEntry(from:needsValue:)`` only. Other reads throw the error.
  case unreadable(StoreError)

  /// The tag of the commit that wrote the value; `nil` if nothing is stored, or if the value is of a future format or
  /// schema, corrupt or unreadable.
  var tag: StoreTag? {
    switch self {
    case .unchanged(let edition), .value(let edition, _), .unmigratable(let edition, _, _): edition.header.tag
    case .nothing, .future, .corrupt, .unreadable: nil
    }
  }

  /// The state to reconcile with the last known one; `nil` for corrupt bytes, which must be quarantined instead.
  var foundState: TopicState.Found? {
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

/// A decoded value, and the layout and sizes of its stored bytes.
struct StoredContent<Value> {
  let value: Value
  /// The number of elements in each part; `nil` if it is unknown or the value is stored whole.
  let counts: [Int]?
  /// The size of the bytes that are stored under the value's own name, without its parts.
  let ownSize: Int
  /// The sizes of its parts, in order; empty for a value that is stored whole.
  let partSizes: [Int]

  /// The total size of the stored bytes of the value, which counts toward the memory limit of decoded values.
  var size: Int { partSizes.reduce(ownSize, +) }
}
