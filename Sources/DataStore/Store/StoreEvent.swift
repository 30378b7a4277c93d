/// An event that concerns the owner of a store, whether or not a call fails because of it.
public enum StoreEvent: Hashable, Sendable {
  /// Bytes were quarantined, because they were corrupt, or because a save or a removal has found a value that could not
  /// be decoded or migrated.
  ///
  /// Nothing is stored for the key until a save succeeds. This may be the save that caused the quarantine.
  ///
  /// `movedTo` is the place of the bytes, for a bug report or a repair.
  case valueQuarantined(StoreKeyName, movedTo: String, reason: String)

  /// A value of a future format or schema was left untouched.
  ///
  /// For observers, the key has no value.
  case newerValueLeftUntouched(StoreKeyName, found: StoredVersion, supported: StoredVersion)

  /// A value was left untouched, because it could not be decoded, although its checksum is right.
  ///
  /// So a program has written it that way, and another version of the program may be able to decode it. For observers,
  /// the key has no value. The next save or removal quarantines the bytes of the value.
  case undecodableValueLeftUntouched(StoreKeyName, reason: String)

  /// A value was left untouched, because it could not be migrated from schema `from`.
  ///
  /// Either the migration to the next schema failed, or there is none: the value was stored in parts, and its type now
  /// stores values whole, but under the same schema. For observers, the key has no value. The next save or removal
  /// quarantines the bytes of the value.
  case migrationFailed(StoreKeyName, from: Int, reason: String)

  /// One value can't be read, for example because a folder has the name of its file.
  ///
  /// For observers, the key has no value. All other values of the collection are available.
  case valueUnreadable(StoreKeyName, StoreError)

  /// External changes could not be watched or read, or corrupt bytes among them could not be quarantined.
  ///
  /// Observers receive the changes late: after the next change in the store's medium, after the next call for the same
  /// key, or, if the watch could not begin, when the next observation begins. A store on a PostgreSQL server reads the
  /// changes again by itself, usually within seconds.
  ///
  /// While the same failure lasts, it is sent once.
  ///
  /// The event is also sent if a key could not be read after an erasure. Observers of the key then receive its removal
  /// late.
  case watchingFailed(StoreError)

  /// The journal of an unfinished commit was quarantined, because it could not be used.
  ///
  /// Either it was corrupt, or an item that a store can't use, such as a folder, has the name of the journal or of one
  /// of its files.
  ///
  /// Some keys of that commit may have their new value, and the other keys their old one. `movedTo` is the place of the
  /// journal, for a bug report or a repair.
  case journalQuarantined(movedTo: String, reason: String)

  /// The whole store was corrupt, and was quarantined.
  ///
  /// Nothing is stored for a key until a value is saved for it.
  ///
  /// `movedTo` is the place of the corrupt store, for a bug report or a repair.
  case storeQuarantined(movedTo: String, reason: String)
}

extension StoreEvent: CustomStringConvertible {
  /// A message that says what happened and what to do.
  public var description: String {
    switch self {
    case .valueQuarantined(let key, let movedTo, let reason):
      "The stored value \(key) could not be decoded or migrated (\(reason)). Its bytes are kept in \(movedTo)."
    case .newerValueLeftUntouched(let key, let found, let supported):
      "The stored value \(key) has \(found), but this app supports \(supported). It was left untouched: update the app."
    case .undecodableValueLeftUntouched(let key, let reason):
      "The stored value \(key) could not be decoded (\(reason)). It was left untouched: update the app to a version "
        + "that can decode it."
    case .migrationFailed(let key, let version, let reason):
      "The stored value \(key) could not be migrated from schema \(version) (\(reason)). It was left untouched: "
        + "correct the migration and update the app."
    case .valueUnreadable(let key, let error):
      "The stored value \(key) could not be read and is left out. \(error)"
    case .watchingFailed(let error):
      "External changes may arrive late. \(error)"
    case .journalQuarantined(let movedTo, let reason):
      "The journal of a commit could not be used (\(reason)). It is kept in \(movedTo): check whether related values "
        + "match."
    case .storeQuarantined(let movedTo, let reason):
      "The store was corrupt (\(reason)). It is kept in \(movedTo), and an empty store has replaced it."
    }
  }
}
