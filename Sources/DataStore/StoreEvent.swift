/// Something a store's owner should know although no call failed for it.
public enum StoreEvent: Hashable, Sendable {
  /// Bytes that could not be decoded were moved aside; for this store the key is empty until the next save.
  ///
  /// `movedTo` says where they are, for a bug report or a repair.
  case corruptValueMovedAside(StoreKeyName, movedTo: String, reason: String)

  /// A value of a newer program was left untouched, and left out of an observation of every user.
  case newerValueLeftUntouched(StoreKeyName, found: StoredVersion, supported: StoredVersion)
}

extension StoreEvent: CustomStringConvertible {
  /// Says what happened and what helps.
  public var description: String {
    switch self {
    case .corruptValueMovedAside(let key, let movedTo, let reason):
      "The stored value \(key) could not be decoded (\(reason)). Its bytes are kept in \(movedTo)."
    case .newerValueLeftUntouched(let key, let found, let supported):
      "The stored value \(key) has \(found), but this program knows \(supported). It is left as it is: update the app."
    }
  }
}
