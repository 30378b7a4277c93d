/// Why a call of a store failed.
///
/// Whatever the case, what was stored before is intact, or was quarantined if it was corrupt.
public enum StoreError: Error, Hashable, Sendable {
  /// What is wrong with a key.
  public enum InvalidKey: Hashable, Sendable {
    /// The collection is empty.
    case emptyCollection

    /// The id is empty; the only value of a collection has the id `nil`.
    case emptyID

    /// The key is longer than ``StoreKeyName/maximumEncodedLength`` allows; `encodedLength` is in bytes.
    case tooLong(encodedLength: Int)
  }

  /// The key can't name a stored value. Nothing was read or written.
  case invalidKey(InvalidKey)

  /// The collection already has values of another type in this store. Nothing was read or written.
  case collectionHasAnotherType(collection: String, existing: String, requested: String)

  /// The key doesn't hold what a precondition of the commit requires. Nothing was changed.
  case preconditionFailed(StoreKeyName)

  /// The value could not be encoded. The old one is still there.
  case encodingFailed(StoreKeyName, reason: String)

  /// The stored bytes could not be decoded. They were quarantined, and nothing is stored for the key any more.
  case undecodable(StoreKeyName, movedTo: String, reason: String)

  /// The value is of a future format or schema. It is left untouched, and is neither replaced nor removed.
  case newerFormat(StoreKeyName, found: StoredVersion, supported: StoredVersion)

  /// The stored value is of an older schema, and the step from schema `from` to the next failed. The value is left
  /// untouched until a save, which quarantines its bytes, or a removal.
  case migrationFailed(StoreKeyName, from: Int, reason: String)

  /// The whole store is of a future layout. It is left untouched, and nothing is read or written.
  ///
  /// The numbers are versions of the layout.
  case newerStore(path: String, found: Int, supported: Int)

  /// The whole store was corrupt. It was quarantined, and nothing is stored any more.
  case damaged(movedTo: String, reason: String)

  /// The system refused to read.
  case readFailed(SystemError)

  /// The system refused to write. The old value is still there.
  ///
  /// Where a server's answer was lost, and it can't be asked, the new one may be there too: the `SQLSTATE` is then 40003.
  case writeFailed(SystemError)

  /// The system refused to remove. The value is still there, but for a lost answer, as above.
  case removeFailed(SystemError)
}

extension StoreError: CustomStringConvertible {
  /// What happened, and what to do.
  public var description: String {
    switch self {
    case .invalidKey(.emptyCollection):
      "The key's collection is empty: give it a name."
    case .invalidKey(.emptyID):
      "The key's id is empty: give it an id, or nil for the only value of its collection."
    case .invalidKey(.tooLong(let encodedLength)):
      "The key needs \(encodedLength) bytes, but \(StoreKeyName.maximumEncodedLength) is the limit: shorten it. "
        + "A character other than a-z, 0-9, _ and - needs three bytes or more."
    case .collectionHasAnotherType(let collection, let existing, let requested):
      "The collection \"\(collection)\" has values of the type \(existing), not \(requested): choose another collection."
    case .preconditionFailed(let key):
      "The stored value \(key) isn't the one the commit requires. Nothing was changed: load it again, then try again."
    case .encodingFailed(let key, let reason):
      "The value \(key) could not be encoded (\(reason)). The old one is still there: correct the value, save again."
    case .undecodable(let key, let movedTo, let reason):
      "The stored value \(key) could not be decoded (\(reason)). Its bytes are kept in \(movedTo): save a new value."
    case .newerFormat(let key, let found, let supported):
      "The stored value \(key) has \(found), but this program knows \(supported). It is left as it is: update the app."
    case .migrationFailed(let key, let version, let reason):
      "The stored value \(key) could not be migrated from schema \(version) (\(reason)). It is left as it is: correct the "
        + "migration and update the app."
    case .newerStore(let path, let found, let supported):
      "The store \(path) has layout \(found), but this program knows \(supported). It is left as it is: update the app."
    case .damaged(let movedTo, let reason):
      "The store was corrupt (\(reason)). It is kept in \(movedTo), and an empty one takes its place: save again."
    case .readFailed(let error):
      "The store could not read. \(error)"
    case .writeFailed(let error) where error.isUnknownOutcome, .removeFailed(let error) where error.isUnknownOutcome:
      "It isn't known whether the change was made. \(error)"
    case .writeFailed(let error):
      "The store could not write; the old value is still there. \(error)"
    case .removeFailed(let error):
      "The store could not remove; the value is still there. \(error)"
    }
  }
}
