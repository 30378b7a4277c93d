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
  case future(StoredVersion, Fingerprint, byteCount: Int)
  /// A value that is intact, but can't be decoded or migrated.
  case unusable(UnusableValue)
  /// Bytes with a wrong checksum, bytes that can't be decoded and have no checksum, the value of another id, or a value
  /// with missing or changed parts.
  case corrupt(bytes: Data, reason: String)
  /// An entry that can't be read at all, such as a folder in place of a file.
  ///
  /// Returned by ``Slot/readEntry(from:needsValue:)`` only. Other reads throw the error.
  case unreadable(StoreError)

  /// The tag of the commit that wrote the value; `nil` if nothing is stored, or if the value is of a future format or
  /// schema, corrupt or unreadable.
  var tag: StoreTag? {
    switch self {
    case .unchanged(let edition), .value(let edition, _): edition.header.tag
    case .unusable(let value): value.tag
    case .nothing, .future, .corrupt, .unreadable: nil
    }
  }

  /// The value that is intact, but can't be decoded or migrated; `nil` for every other result.
  var unusableValue: UnusableValue? { if case .unusable(let value) = self { value } else { nil } }

  /// The change that a feed receives because it can't receive the value; `nil` if it can, or if the bytes are corrupt.
  func unusableChange(of key: StoreKeyName) -> StoreFeedChange? {
    switch self {
    case .future(let found, _, let byteCount):
      let reason = "it is stored in \(found), and this program supports \(Envelope.supported(by: Value.self))"
      return .unusable(key, schema: found.schema, reason: reason, byteCount: byteCount)
    case .unusable(let value):
      return .unusable(key, schema: nil, reason: value.reason.description, byteCount: value.bytes.count)
    case .unreadable(let error): return .unusable(key, schema: nil, reason: error.description, byteCount: nil)
    case .nothing, .unchanged, .value, .corrupt: return nil
    }
  }

  /// The state to reconcile with the last known one; `nil` for corrupt bytes, which must be quarantined instead.
  var foundState: TopicState.Found? {
    switch self {
    case .nothing: .nothing
    case .unchanged(let edition), .value(let edition, _): .value(edition)
    case .future(_, let fingerprint, _): .unusable(fingerprint)
    case .unusable(let value): .unusable(value.fingerprint)
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
