internal import Foundation

/// A stored value that this program can't use, although its bytes are as a program has written them.
///
/// Another version of the program may be able to use it: an older one, a newer one, or one in which a faulty decoder is
/// repaired. So it is left untouched until a save or a removal, which quarantines its bytes.
struct UnusableValue {
  let bytes: Data
  let fingerprint: Fingerprint
  /// The tag in the header; derived from the bytes if the header can't be decoded either.
  let tag: StoreTag
  let reason: UnusableReason
}

/// The reason why a program can't use a stored value whose bytes are intact.
enum UnusableReason: Equatable {
  /// The header, or a value of the supported schema, could not be decoded.
  case undecodable(reason: String)
  /// The migration from a schema to the next one failed, or there is no migration.
  ///
  /// There is none if the value was stored in parts, and its type has the same schema but isn't a ``PartitionedValue``
  /// anymore.
  case unmigratable(from: Int, reason: String)

  /// The reason for a message about the quarantine of the bytes.
  var description: String {
    switch self {
    case .undecodable(let reason): reason
    case .unmigratable(let version, let reason): "the migration from schema \(version) failed: \(reason)"
    }
  }

  /// Returns the error of a load.
  func error(for key: StoreKeyName) -> StoreError {
    switch self {
    case .undecodable(let reason): .undecodable(key, movedTo: nil, reason: reason)
    case .unmigratable(let version, let reason): .migrationFailed(key, from: version, reason: reason)
    }
  }

  /// Returns the event for observers, who receive no value.
  func event(for key: StoreKeyName) -> StoreEvent {
    switch self {
    case .undecodable(let reason): .undecodableValueLeftUntouched(key, reason: reason)
    case .unmigratable(let version, let reason): .migrationFailed(key, from: version, reason: reason)
    }
  }
}
