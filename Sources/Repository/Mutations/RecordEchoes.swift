/// Distinguishes the changes of records that this repository made from external ones.
///
/// The store reports every change of a record, the repository's own among them, and perhaps long after it was made.
///
/// A pure state machine.
///
/// - Complexity: O(1) for each function. Remembers each record that is being written, and each one that was removed until
///   the store reports the removal.
struct RecordEchoes {
  private var writeCounts: [MutationID: Int] = [:]
  /// The newest revision of each record that was reported while the record was being written.
  private var unseen: [MutationID: UInt64] = [:]
  /// The revisions of own removals that the store hasn't reported yet.
  private var removals: [MutationID: UInt64] = [:]
  /// The newest revision that was reported.
  private var reportedRevision: UInt64 = 0

  /// Whether a record is being written or removed.
  func isBeingWritten(_ id: MutationID) -> Bool { writeCounts[id] != nil }

  /// Whether the store hasn't reported yet that this repository removed a record.
  func isRemoved(_ id: MutationID) -> Bool { removals[id] != nil }

  /// Records that all records were read, so that earlier changes aren't reported any more.
  ///
  /// - Parameter ids: Those that were found. One of them that this repository has removed was removed later.
  mutating func recordReading(of ids: Set<MutationID>) {
    if !removals.isEmpty { removals = removals.filter { ids.contains($0.key) } }
  }

  /// Records that a record is about to be written or removed.
  mutating func beginWriting(_ id: MutationID) {
    writeCounts[id, default: 0] += 1
  }

  /// Records that the write or the removal is made, or has failed.
  ///
  /// - Returns: The newest revision that was reported meanwhile, of which it isn't known whose it is, if no other write is
  ///   being made. One behind the last write's is external.
  @discardableResult
  mutating func endWriting(_ id: MutationID) -> UInt64? {
    writeCounts[id]? -= 1
    guard writeCounts[id] == 0 else { return nil }
    writeCounts[id] = nil
    return unseen.removeValue(forKey: id)
  }

  /// Records that a record was removed.
  mutating func recordRemoval(of id: MutationID, revision: UInt64) {
    if revision > reportedRevision { removals[id] = revision }
  }

  /// Records that the store reports a change of a record.
  ///
  /// - Returns: Whether the change is external, as far as is known before ``endWriting(_:)``.
  mutating func receive(_ id: MutationID, revision: UInt64) -> Bool {
    reportedRevision = max(reportedRevision, revision)
    if let removal = removals[id] {
      // Nothing changes a record behind its removal.
      if revision >= removal { removals[id] = nil }
      return false
    }
    guard isBeingWritten(id) else { return true }
    unseen[id] = max(unseen[id] ?? 0, revision)
    return false
  }
}
