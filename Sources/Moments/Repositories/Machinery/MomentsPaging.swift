internal import DataStore
internal import Foundation

/// What is known of the pages of one user's timeline beside what is stored; the next process does not know it.
///
/// Pure: told what the server refused and what was stored, it says what that means for the next reply and for the
/// freshness of the timeline.
struct MomentsPaging {
  /// The end of the stored timeline, where the server refused to give the page behind it; nil where it did not.
  private(set) var refusedCursor: String?
  /// The last timeline that was stored as a page was appended, and when its head was stored.
  private var appended: (revision: UInt64, headSavedAt: Date)?

  /// The server refused to give the page behind a moment.
  mutating func refuse(_ cursor: String) {
    refusedCursor = cursor
  }

  /// A reply was stored.
  ///
  /// - Parameters:
  ///   - reply: The reply.
  ///   - saved: What was stored of it.
  ///   - stored: What was stored before; nil where the reply replaced that.
  mutating func note(
    _ reply: MomentsReply, savedAs saved: StoredValue<MomentsDetails>, joinedTo stored: StoredValue<MomentsDetails>?
  ) {
    if !reply.hasHead, let stored { appended = (saved.revision, headSavedAt(of: stored)) }
    // A refusal concerns one end; what ends elsewhere by now may lead on.
    if saved.value.nextCursor != refusedCursor { refusedCursor = nil }
  }

  /// When the head of a stored timeline was stored, which is earlier than the rest where pages were appended.
  func headSavedAt(of stored: StoredValue<MomentsDetails>) -> Date {
    guard let appended, stored.revision <= appended.revision else { return stored.savedAt }
    return appended.headSavedAt
  }
}
