internal import Foundation

/// The change and the preconditions of one key, with the encoded key, and the encoded value if it is stored whole.
///
/// Saves and batches create it outside of the store's isolation, so that values are encoded in parallel.
struct PreparedChange<Value: Codable & Sendable>: AnyPreparedChange {
  /// The bytes of a value that is stored whole, and their edition.
  struct Whole: Sendable {
    let edition: Edition
    let bytes: Data
  }

  let entry: StoreBatchEntry<Value>
  let name: String
  /// The encoded value to save; `nil` if nothing is saved, or if the value is stored in parts.
  ///
  /// The bytes of a value in parts depend on the stored value, so ``PendingKey`` encodes them later.
  let whole: Whole?

  var typed: PreparedChange<Value> { self }

  /// Encodes the key, and the value if it is stored whole.
  ///
  /// - Throws: ``StoreError/invalidKey(_:)`` or ``StoreError/encodingFailed(_:reason:)``.
  init(_ entry: StoreBatchEntry<Value>, savedAt: Date, tag: StoreTag) throws(StoreError) {
    self.entry = entry
    name = try entry.key.keyName.encoded()
    guard case .save(let value) = entry.change, !(Value.self is any PartitionedValue.Type) else {
      whole = nil
      return
    }
    do {
      let header = Envelope.Header(
        schema: StoreSchema.of(Value.self).version, savedAt: savedAt, tag: tag, partIDs: nil,
        longID: entry.key.keyName.longID(besides: name))
      let bytes = try Envelope.encode(header, body: JSONEncoder.ofWholeValues.encode(value))
      whole = Whole(edition: Edition(fingerprint: Fingerprint(bytes), header: header), bytes: bytes)
    } catch {
      throw .encodingFailed(entry.key.keyName, reason: String(describing: error))
    }
  }
}

/// A ``PreparedChange`` of any type of value.
protocol AnyPreparedChange: Sendable {
  associatedtype Value: Codable & Sendable

  /// The change with its type.
  var typed: PreparedChange<Value> { get }
}
