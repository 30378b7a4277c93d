/// Something that a store's owner should know although no call failed for it.
public enum StoreEvent: Hashable, Sendable {
  /// Bytes that could not be decoded were quarantined; the key is empty until the next save.
  ///
  /// `movedTo` is where they are, for a bug report or a repair.
  case valueQuarantined(StoreKeyName, movedTo: String, reason: String)

  /// A value of a future format or schema was left untouched; for observers nothing is stored.
  case newerValueLeftUntouched(StoreKeyName, found: StoredVersion, supported: StoredVersion)

  /// A value of an older schema was left untouched, because the step from schema `from` to the next failed; for
  /// observers nothing is stored. The next save quarantines its bytes.
  case migrationFailed(StoreKeyName, from: Int, reason: String)

  /// One value can't be read, for example because something that isn't a file has its name; for observers nothing is
  /// stored. All other values of the collection are there.
  case valueUnreadable(StoreKeyName, StoreError)

  /// External changes could not be watched or read. Observers get them late: with the next change in the same place,
  /// with the next call for the same key, or, if the watch could not begin, with the next observer.
  case watchingFailed(StoreError)

  /// The journal of a commit that another process didn't finish was corrupt, and was quarantined. Of the keys of that
  /// commit some keys may have their new value and the rest their old one.
  ///
  /// `movedTo` is where it is, for a bug report or a repair.
  case journalQuarantined(movedTo: String, reason: String)

  /// The whole store was corrupt and was quarantined; every key is empty until its next save.
  ///
  /// `movedTo` is where it is, for a bug report or a repair.
  case storeQuarantined(movedTo: String, reason: String)
}

extension StoreEvent: CustomStringConvertible {
  /// What happened, and what to do.
  public var description: String {
    switch self {
    case .valueQuarantined(let key, let movedTo, let reason):
      "The stored value \(key) could not be decoded (\(reason)). Its bytes are kept in \(movedTo)."
    case .newerValueLeftUntouched(let key, let found, let supported):
      "The stored value \(key) has \(found), but this program knows \(supported). It is left as it is: update the app."
    case .migrationFailed(let key, let version, let reason):
      "The stored value \(key) could not be migrated from schema \(version) (\(reason)). It is left as it is: correct the "
        + "migration and update the app."
    case .valueUnreadable(let key, let error):
      "The stored value \(key) is left out. \(error)"
    case .watchingFailed(let error):
      "External changes may be seen late. \(error)"
    case .journalQuarantined(let movedTo, let reason):
      "The journal of a commit was corrupt (\(reason)). It is kept in \(movedTo): check the values that belong together."
    case .storeQuarantined(let movedTo, let reason):
      "The store was corrupt (\(reason)). It is kept in \(movedTo), and an empty one has taken its place."
    }
  }
}
