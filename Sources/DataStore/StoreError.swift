/// Why a store could not do what it was asked.
///
/// Whatever the case, what was stored before is intact, or has been moved aside where it was damaged.
public enum StoreError: Error, Hashable, Sendable {
  /// What is wrong with a key.
  public enum InvalidKey: Hashable, Sendable {
    /// The name is empty.
    case emptyName

    /// The user's id is empty; a value that belongs to no user has none, nil.
    case emptyUserID

    /// The key is longer than ``StoreKeyName/maximumEncodedLength`` allows; `encodedLength` is in bytes.
    case tooLong(encodedLength: Int)
  }

  /// The key cannot name a stored value. Nothing was read or written.
  case invalidKey(InvalidKey)

  /// The name already stands for values of another type in this store. Nothing was read or written.
  case keyHasAnotherType(name: String, existing: String, requested: String)

  /// The value could not be encoded. The old one is still there.
  case encodingFailed(StoreKeyName, reason: String)

  /// The stored bytes could not be decoded. They were moved aside, and from now on nothing is stored for the key.
  case undecodable(StoreKeyName, movedTo: String, reason: String)

  /// A newer program stored the value. It is left untouched, and is neither replaced nor removed.
  case newerFormat(StoreKeyName, found: StoredVersion, supported: StoredVersion)

  /// The stored value is of an older schema, and the step from schema `from` to the next failed. It is left untouched
  /// until a save, which moves its bytes aside, or a removal.
  case migrationFailed(StoreKeyName, from: Int, reason: String)

  /// A newer program made the whole store. It is left untouched, and nothing is read or written.
  ///
  /// The numbers are the versions of its layout.
  case newerStore(path: String, found: Int, supported: Int)

  /// The whole store was damaged. It was moved aside, and from now on nothing is stored.
  case damaged(movedTo: String, reason: String)

  /// The system refused to read.
  case readFailed(SystemError)

  /// The system refused to write. The old value is still there.
  case writeFailed(SystemError)

  /// The system refused to remove. The value is still there.
  case removeFailed(SystemError)
}

extension StoreError: CustomStringConvertible {
  /// Says what happened and what helps.
  public var description: String {
    switch self {
    case .invalidKey(.emptyName):
      "The key's name is empty: give it one."
    case .invalidKey(.emptyUserID):
      "The key's user id is empty: give the user's id, or nil for a value that belongs to no user."
    case .invalidKey(.tooLong(let encodedLength)):
      "The key needs \(encodedLength) bytes, but \(StoreKeyName.maximumEncodedLength) is the limit: shorten it. "
        + "A character other than a-z, 0-9, _ and - needs three bytes or more."
    case .keyHasAnotherType(let name, let existing, let requested):
      "\"\(name)\" stands for \(existing) in this store, so it cannot be used for \(requested): choose another name."
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
      "The store was damaged (\(reason)). It is kept in \(movedTo), and an empty one takes its place: save again."
    case .readFailed(let error):
      "The store could not read. \(error)"
    case .writeFailed(let error):
      "The store could not write; the old value is still there. \(error)"
    case .removeFailed(let error):
      "The store could not remove; the value is still there. \(error)"
    }
  }
}
