internal import DataStore

// MARK: - Pages

extension MomentsBroadcast {
  /// The server refused to give the page behind a moment.
  func refuseNextPage(after cursor: String, userID: String) {
    pagings[userID, default: MomentsPaging()].refuse(cursor)
  }

  /// A reply was stored, and the next one is not stored yet.
  func notePage(savedAs saved: StoredValue<MomentsDetails>, userID: String) {
    pagings[userID, default: MomentsPaging()].note(savedAs: saved)
  }
}
