internal import DataStore
internal import Foundation

// MARK: - Pages

extension MomentsBroadcast {
  /// The server refused to give the page behind a moment.
  func refuseNextPage(after cursor: String, userID: String) {
    pagings[userID, default: MomentsPaging()].refuse(cursor)
  }

  /// A reply was stored, and the next one is not stored yet.
  func notePage(
    _ reply: MomentsReply, savedAs saved: StoredValue<MomentsDetails>, joinedTo stored: StoredValue<MomentsDetails>?,
    userID: String
  ) {
    pagings[userID, default: MomentsPaging()].note(reply, savedAs: saved, joinedTo: stored)
  }

  /// When the head of the stored timeline was stored, as far as this process knows; nil when nothing is stored.
  func headSavedAt(userID: String) async throws(MomentsRepoError) -> Date? {
    guard let stored = try await stored(userID: userID) else { return nil }
    return pagings[userID, default: MomentsPaging()].headSavedAt(of: stored)
  }
}
