/// Decides whether a reported change of a record is external, or the echo of a change by this repository.
///
/// The store reports this repository's own changes too, possibly long after they were made.
///
/// A pure state machine.
///
/// - Complexity: O(1) for each function, except ``recordReading(of:)``, which is O(*n*) for the *n* remembered
///   removals. This type remembers each record that is being written, and each removed record until the store reports
///   the removal or all records are read again.
struct RecordEchoes {
  /// The number of writes in flight of each record that is being written.
  private var writesInFlight: [MutationID: Int] = [:]
  /// For each record that is being written, the newest revision that was reported since the write began.
  private var reportedDuringWrite: [MutationID: UInt64] = [:]
  /// The revisions of this repository's removals that the store hasn't reported yet.
  private var unreportedRemovals: [MutationID: UInt64] = [:]
  /// The newest revision that was reported.
  private var reportedRevision: UInt64 = 0

  /// Whether a record is being written or removed.
  func isBeingWritten(_ id: MutationID) -> Bool { writesInFlight[id] != nil }

  /// Whether this repository removed a record and the store hasn't reported that yet.
  func isRemoved(_ id: MutationID) -> Bool { unreportedRemovals[id] != nil }

  /// Records a read of all records.
  ///
  /// Changes from before the read are no longer reported.
  ///
  /// - Parameter ids: The ids of the records that were read. If this repository has removed one of them, it did so
  ///   after the read.
  mutating func recordReading(of ids: Set<MutationID>) {
    if !unreportedRemovals.isEmpty { unreportedRemovals = unreportedRemovals.filter { ids.contains($0.key) } }
  }

  /// Records that a record is about to be written or removed.
  mutating func beginWriting(_ id: MutationID) {
    writesInFlight[id, default: 0] += 1
  }

  /// Records that a write or a removal has succeeded or failed.
  ///
  /// - Returns: The newest revision that was reported while the record was being written; `nil` if none was, or another
  ///   write of the record is in flight. A revision that is newer than that of the last write is external.
  @discardableResult
  mutating func endWriting(_ id: MutationID) -> UInt64? {
    writesInFlight[id]? -= 1
    guard writesInFlight[id] == 0 else { return nil }
    writesInFlight[id] = nil
    return reportedDuringWrite.removeValue(forKey: id)
  }

  /// Records that this repository removed a record.
  mutating func recordRemoval(of id: MutationID, revision: UInt64) {
    if revision > reportedRevision { unreportedRemovals[id] = revision }
  }

  /// Records a change that the store reports.
  ///
  /// - Returns: Whether the change may be external. It is also `true` for an echo that the store reports after the
  ///   write has ended; the caller recognizes the echo by its revision. It is `false` during a write, because
  ///   ``endWriting(_:)`` decides later. After a removal by this repository, it is `false` until the removal has been
  ///   reported.
  mutating func receive(_ id: MutationID, revision: UInt64) -> Bool {
    reportedRevision = max(reportedRevision, revision)
    if let removalRevision = unreportedRemovals[id] {
      // A removed record doesn't change again, so this change is the removal or an earlier one.
      if revision >= removalRevision { unreportedRemovals[id] = nil }
      return false
    }
    guard isBeingWritten(id) else { return true }
    reportedDuringWrite[id] = max(reportedDuringWrite[id] ?? 0, revision)
    return false
  }
}
