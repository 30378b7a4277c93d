internal import Repository

/// Tells the arrivals of a repository's own saves of one timeline from those of others.
///
/// By their revisions, as others may save the same value. A save may arrive before the call that makes it returns and
/// tells its revision: while one is under way, what arrives is undecided. One save is under way at a time.
struct OwnSaves {
  private struct Arrival {
    let revision: UInt64
    let moment: VersionGuard.Ticket
  }

  /// Saved, and not arrived yet.
  private var expected: Set<UInt64> = []
  /// What has arrived during the save that is under way; nil when none is.
  private var undecided: [Arrival]?
  private var lastArrived: UInt64 = 0

  /// A save begins.
  mutating func begin() {
    undecided = []
  }

  /// A save has ended.
  ///
  /// - Parameter revision: Its revision; nil if it failed.
  /// - Returns: When the last save of somebody else arrived meanwhile; nil if none did.
  mutating func end(_ revision: UInt64?) -> VersionGuard.Ticket? {
    let others = undecided?.last { $0.revision != revision }
    undecided = nil
    if let revision, revision > lastArrived { expected.insert(revision) }
    return others?.moment
  }

  /// A save has arrived; in the order of the revisions.
  ///
  /// - Returns: Whether it is somebody else's for sure.
  mutating func arrived(_ revision: UInt64, at moment: VersionGuard.Ticket) -> Bool {
    let isExpected = expected.contains(revision)
    skip(upTo: revision)
    if isExpected { return false }
    undecided?.append(Arrival(revision: revision, moment: moment))
    return undecided == nil
  }

  /// Saves up to this revision arrive no more: they were made before the store was observed.
  mutating func skip(upTo revision: UInt64) {
    lastArrived = max(lastArrived, revision)
    if !expected.isEmpty { expected = expected.filter { $0 > revision } }
  }
}
