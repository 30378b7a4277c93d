/// Something a store's owner should know although no call failed for it.
public enum StoreEvent: Hashable, Sendable {
  /// Bytes that could not be decoded were moved aside; for this store the key is empty until the next save.
  ///
  /// `movedTo` says where they are, for a bug report or a repair.
  case corruptValueMovedAside(StoreKeyName, movedTo: String, reason: String)

  /// A value of a newer program was left untouched; for observers nothing is stored.
  case newerValueLeftUntouched(StoreKeyName, found: StoredVersion, supported: StoredVersion)

  /// A value of an older schema was left untouched, because the step from schema `from` to the next failed; for
  /// observers nothing is stored. The next save moves its bytes aside.
  case migrationFailed(StoreKeyName, from: Int, reason: String)

  /// What others change could not be watched or looked at. Observers learn of it late: with the next change in the same
  /// place, the next call for the same key, or, if the watch could not even begin, the next observer.
  case watchingFailed(StoreError)

  /// The whole store was damaged and moved aside; every key is empty until its next save.
  ///
  /// `movedTo` says where it is, for a bug report or a repair.
  case damagedStoreMovedAside(movedTo: String, reason: String)
}

extension StoreEvent: CustomStringConvertible {
  /// Says what happened and what helps.
  public var description: String {
    switch self {
    case .corruptValueMovedAside(let key, let movedTo, let reason):
      "The stored value \(key) could not be decoded (\(reason)). Its bytes are kept in \(movedTo)."
    case .newerValueLeftUntouched(let key, let found, let supported):
      "The stored value \(key) has \(found), but this program knows \(supported). It is left as it is: update the app."
    case .migrationFailed(let key, let version, let reason):
      "The stored value \(key) could not be migrated from schema \(version) (\(reason)). It is left as it is: correct the "
        + "migration and update the app."
    case .watchingFailed(let error):
      "Changes by others may be seen late. \(error)"
    case .damagedStoreMovedAside(let movedTo, let reason):
      "The store was damaged (\(reason)). It is kept in \(movedTo), and an empty one has taken its place."
    }
  }
}
