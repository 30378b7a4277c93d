/// The reason why a call of a store failed.
///
/// A failed call to the operating system or to a database is one of six cases. The case names what the caller of the
/// store asked for. The ``SystemError`` names the step that failed, which may be another one, such as a read before a
/// save.
///
/// The value that was stored before the call is intact or quarantined. It is quarantined only if it was corrupt, if the
/// whole store was corrupt, or if a save or a removal was about to replace a value that could not be decoded or
/// migrated. The exceptions are the unknown outcome that ``writeFailed(_:)`` describes, and an erasure that erased some
/// items before it failed.
public enum StoreError: Error, Hashable, Sendable {
  /// The reason why a key is invalid.
  public enum InvalidKey: Hashable, Sendable {
    /// The collection is empty.
    case emptyCollection

    /// The id is empty.
    ///
    /// If the collection has only one value, use `nil` as its id.
    case emptyID

    /// The collection or the id is too long; see ``StoreKeyName/maximumEncodedLength`` and
    /// ``StoreKeyName/maximumIDLength``.
    ///
    /// The associated value is the length of the collection and the id in their encoded form, in bytes.
    case tooLong(encodedLength: Int)
  }

  /// The key is invalid. Nothing was read or written.
  case invalidKey(InvalidKey)

  /// This store object already uses the collection with another type of value.
  ///
  /// Nothing was read or written.
  case collectionHasAnotherType(collection: String, existing: String, requested: String)

  /// The stored value of the key isn't the one that a precondition of the commit requires. Nothing was changed.
  case preconditionFailed(StoreKeyName)

  /// The value could not be encoded. The old one is still stored.
  case encodingFailed(StoreKeyName, reason: String)

  /// The stored bytes could not be decoded.
  ///
  /// If they were corrupt, they were quarantined in `movedTo`, and nothing is stored for the key now.
  ///
  /// If their checksum is right, a program has written them that way, and another version of the program may be able to
  /// decode them. They are then left untouched until a save or a removal quarantines them, and `movedTo` is `nil`.
  case undecodable(StoreKeyName, movedTo: String?, reason: String)

  /// The stored value is of a future format or schema.
  ///
  /// It is left untouched: saves don't replace it, and removals don't remove it. There are two exceptions:
  /// - ``KeyValueStore/erase(where:)`` deletes it.
  /// - ``KeyValueStore/removeAll(in:)`` removes it if its format is supported, and if this store object hasn't used the
  ///   collection with a type. The store then doesn't know which schemas are supported.
  case newerFormat(StoreKeyName, found: StoredVersion, supported: StoredVersion)

  /// The stored value could not be migrated from schema `from`.
  ///
  /// Either the migration to the next schema failed, or there is none: the value was stored in parts, and its type now
  /// stores values whole, but under the same schema. The value is left untouched until a save or a removal quarantines
  /// its bytes.
  case migrationFailed(StoreKeyName, from: Int, reason: String)

  /// The whole store is of a future layout. It is left untouched, and nothing was read or written.
  ///
  /// The numbers are versions of the layout.
  case newerStore(path: String, found: Int, supported: Int)

  /// The whole store was corrupt. It was quarantined, and nothing is stored now.
  case corruptStore(movedTo: String, reason: String)

  /// A call to the operating system or to a database failed while loading or observing values.
  case readFailed(SystemError)

  /// A call to the operating system or to a database failed during a save, or during a commit that saves a value. The
  /// old values are still stored.
  ///
  /// The exception is an unknown outcome: the new value may be stored instead. There are two such cases:
  /// - The answer of a database server was lost, and the server can't be asked again or no longer knows the outcome.
  ///   The `SQLSTATE` of the error is then 40003.
  /// - A change of a file could neither be made durable nor be undone. Then `undoing the change` is the
  ///   ``SystemError/operation``.
  case writeFailed(SystemError)

  /// A call to the operating system or to a database failed during a removal, or during a commit that removes values
  /// and saves none. The values are still stored.
  ///
  /// If the outcome is unknown, as ``writeFailed(_:)`` describes, the values may be removed instead.
  case removeFailed(SystemError)

  /// A call to the operating system or to a database failed during a commit that only has preconditions. It isn't known
  /// whether they hold.
  case checkFailed(SystemError)

  /// A call to the operating system or to a database failed during an erasure. Some items may be erased already.
  case eraseFailed(SystemError)

  /// A call to the operating system or to a database failed while acquiring a lock, which the caller doesn't have.
  case lockFailed(SystemError)
}

extension StoreError {
  /// The failed call to the operating system or to a database; `nil` for an error of another kind.
  var systemError: SystemError? {
    switch self {
    case .readFailed(let error), .writeFailed(let error), .removeFailed(let error), .checkFailed(let error),
      .eraseFailed(let error), .lockFailed(let error):
      error
    default: nil
    }
  }

  /// Returns the error with the case that names what the caller of the store asked for.
  ///
  /// A backend can name only the step that failed: a save also reads the old value, and a load may quarantine bytes.
  ///
  /// - Parameter failure: Creates the error of the caller's request. Errors without a ``systemError`` stay the same.
  func naming(_ failure: (SystemError) -> StoreError) -> StoreError { systemError.map(failure) ?? self }
}

extension StoreError: CustomStringConvertible {
  /// A message that says what happened and what to do.
  public var description: String {
    switch self {
    case .invalidKey(.emptyCollection):
      "The key's collection is empty: give it a name."
    case .invalidKey(.emptyID):
      "The key's id is empty: give it an id, or nil for the only value of its collection."
    case .invalidKey(.tooLong(let encodedLength)):
      "The key needs \(encodedLength) bytes in its encoded form, which is too long: shorten an id to "
        + "\(StoreKeyName.maximumIDLength) bytes of UTF-8, and the encoded collection to "
        + "\(LongKeyName.maximumCollectionLength) bytes beside a long id, or to \(StoreKeyName.maximumEncodedLength). "
        + "In the encoded form, a character other than a-z, 0-9, _ and - needs three bytes or more."
    case .collectionHasAnotherType(let collection, let existing, let requested):
      "The collection \"\(collection)\" is already used with the type \(existing), not \(requested): use another "
        + "collection."
    case .preconditionFailed(let key):
      "The stored value \(key) isn't the one that the commit requires. Nothing was changed: load it and try again."
    case .encodingFailed(let key, let reason):
      "The value \(key) could not be encoded (\(reason)). The old value is still stored: correct the new one and save "
        + "again."
    case .undecodable(let key, let movedTo?, let reason):
      "The stored value \(key) could not be decoded (\(reason)). Its bytes are kept in \(movedTo): save a new value."
    case .undecodable(let key, nil, let reason):
      "The stored value \(key) could not be decoded (\(reason)). It was left untouched: update the app to a version "
        + "that can decode it, or save a new value."
    case .newerFormat(let key, let found, let supported):
      "The stored value \(key) has \(found), but this app supports \(supported). It was left untouched: update the app."
    case .migrationFailed(let key, let version, let reason):
      "The stored value \(key) could not be migrated from schema \(version) (\(reason)). It was left untouched: "
        + "correct the migration and update the app."
    case .newerStore(let path, let found, let supported):
      "The store \(path) has layout \(found), but this app supports \(supported). It was left untouched: update the "
        + "app."
    case .corruptStore(let movedTo, let reason):
      "The store was corrupt (\(reason)). It is kept in \(movedTo), and an empty store has replaced it: save again."
    case .readFailed(let error):
      "The store could not read. \(error)"
    case .writeFailed(let error) where error.isUnknownOutcome, .removeFailed(let error) where error.isUnknownOutcome:
      "The change may or may not have been made. \(error)"
    case .writeFailed(let error):
      "The store could not write; the old value is still there. \(error)"
    case .removeFailed(let error):
      "The store could not remove the value, which is still there. \(error)"
    case .checkFailed(let error):
      "The store could not check the preconditions, and nothing was to be changed. \(error)"
    case .eraseFailed(let error):
      "The store could not erase everything; some items may be left. \(error)"
    case .lockFailed(let error):
      "The store could not lock the name. \(error)"
    }
  }
}
