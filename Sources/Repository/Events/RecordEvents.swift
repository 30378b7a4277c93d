internal import DataStore

extension RepositoryEvent {
  /// Creates the event for a mutation that is held.
  init<Key: RepositoryKey>(_ held: HeldMutation<Key>) {
    self =
      switch held.reason {
      case .futureFormat, .futureSchema: .mutationOfFutureSchema(held.id)
      case .unmigratable(_, let reason): .mutationNotMigrated(held.id, reason: reason)
      case .undecodable(let reason): .mutationUnreadable(held.id, movedTo: nil, reason: reason)
      case .unknownKey(let key): .mutationOfUnknownKey(held.id, key: key)
      }
  }

  /// Creates the event for an event of the store, or returns `nil` if the event doesn't concern the mutations.
  ///
  /// - Parameters:
  ///   - event: The event of the store.
  ///   - collection: The collection of the mutations.
  init?(_ event: StoreEvent, of collection: String) {
    switch event {
    case .valueQuarantined(let key, let movedTo, let reason) where key.collection == collection:
      self = .mutationUnreadable(MutationID(rawValue: key.id ?? ""), movedTo: movedTo, reason: reason)
    case .undecodableValueLeftUntouched(let key, let reason) where key.collection == collection:
      self = .mutationUnreadable(MutationID(rawValue: key.id ?? ""), movedTo: nil, reason: reason)
    case .newerValueLeftUntouched(let key, _, _) where key.collection == collection:
      self = .mutationOfFutureSchema(MutationID(rawValue: key.id ?? ""))
    case .migrationFailed(let key, _, let reason) where key.collection == collection:
      self = .mutationNotMigrated(MutationID(rawValue: key.id ?? ""), reason: reason)
    default: return nil
    }
  }
}

extension StoreEvent {
  /// The mutation whose record was quarantined, and the error of a read of the record; `nil` if this is another event.
  func quarantine(in collection: String) -> (MutationID, StoreError)? {
    guard case .valueQuarantined(let key, let movedTo, let reason) = self, key.collection == collection, let id = key.id
    else { return nil }
    return (MutationID(rawValue: id), .undecodable(key, movedTo: movedTo, reason: reason))
  }
}
