internal import DataStore

/// What is known of the pages of one user's timeline beside what is stored; the next process does not know it.
///
/// Pure: told what the server refused and what was stored, it says what that means for the next reply.
struct MomentsPaging {
  /// The end of the stored timeline, where the server refused to give the page behind it; nil where it did not.
  private(set) var refusedCursor: String?

  /// The server refused to give the page behind a moment.
  mutating func refuse(_ cursor: String) {
    refusedCursor = cursor
  }

  /// A reply was stored.
  mutating func note(savedAs saved: StoredValue<MomentsDetails>) {
    // A refusal concerns one end; what ends elsewhere by now may lead on.
    if saved.value.nextCursor != refusedCursor { refusedCursor = nil }
  }
}
