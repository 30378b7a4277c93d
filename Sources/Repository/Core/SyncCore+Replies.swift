internal import DataStore

/// The results of replies, which are stored.
///
/// For each key there is one write at a time, with all replies that have arrived. A write is one commit: the new value,
/// and the removal of the mutations that it includes. The commit requires that the value that the replies were judged
/// against is still stored. If another repository or process has changed it, the replies are judged again.
extension SyncCore {
  typealias Write = SyncState<Value, Mutation>.Write

  /// Starts to write the replies that have arrived, unless that is in progress or the user has signed out.
  mutating func write(_ id: ID) {
    guard let state = keys[id], !state.isWriting else { return }
    keys[id]?.isWriting = true
    start(.write(id))
  }

  /// Judges the replies that have arrived.
  ///
  /// - Returns: The write; `nil` if there is none.
  mutating func beginWriting(_ id: ID) -> Write? { keys[id]?.state.beginWriting() }

  /// Makes the commit of a write.
  mutating func makeCommit(of write: Write, _ id: ID) -> StoreBatch? {
    guard let storeKey = keys[id]?.storeKey else { return nil }
    var batch = StoreBatch()
    // Required even if no value is saved, because another repository may have stored a value that lacks the mutations
    // whose records are removed. Without a base, the commit may replace a value that can't be decoded; the store then
    // quarantines its bytes.
    batch.requireFound(write.baseTag, of: storeKey)
    requirement(of: id.key.userID)?.add(to: &batch)
    if let value = write.value { batch.save(value, for: storeKey) }
    for mutation in write.confirmed { batch.remove(recordKeys.record(mutation)) }
    writes[batch.tag] = (write, id)
    return batch
  }

  /// Applies a commit if it is that of a write.
  mutating func applyWrite(_ commit: StoreCommit) {
    guard let (write, id) = writes.removeValue(forKey: commit.tag) else { return }
    apply(write, commit, id)
  }

  mutating func apply(_ write: Write, _ commit: StoreCommit, _ id: ID) {
    keys[id]?.state.commit(revision: commit.revision, tag: commit.tag)
    // The time according to the store, which is also the time that the next process will read.
    if write.isRefreshed { keys[id]?.recordFetch(at: write.value == nil ? now.time : commit.savedAt) }
    for mutation in write.confirmed { queue.remove(mutation) }
    touch(id)
  }

  /// Ends the calls and the fetches whose replies a write has stored.
  ///
  /// - Returns: The next write; `nil` if all replies are stored.
  mutating func endWrite(_ write: Write, _ id: ID) -> Write? {
    keys[id]?.failedWrites = 0
    for mutation in write.confirmed {
      emit(.mutationDelivered(mutation))
      end(mutation, .success(.confirmed))
    }
    endFetches(write.accepted, .success(true))
    endFetches(write.rejected, .success(false))
    let next = beginWriting(id)
    if next == nil { endWriting(id) }
    return next
  }

  mutating func endFetches(_ numbers: [Int], _ result: Result<Bool, Failure>) {
    for number in numbers { effects.ends.append(.fetch(number, result)) }
  }

  /// Ends the writes of a key, because all replies are stored or can't be stored now.
  mutating func endWriting(_ id: ID) {
    keys[id]?.isWriting = false
    if keys[id]?.state.needsWholeValue ?? false { fetchWhole(id) }
    release(id)
  }

  /// Prepares the next write after one that has failed because of what is stored.
  mutating func judgeAgain(_ id: ID) {
    keys[id]?.state.abandon(keepsFetches: true)
    touch(id)
  }

  /// What follows a write that has failed because of the store.
  enum FailedWrite {
    /// The next write begins at once.
    case writeAgain
    case writeLater(attempt: Int)
    case end
    /// The mutations are refused, because their value can never be stored.
    case refuse([MutationID])
    /// The mutations are sent again, because a newer version of the program has stored the value.
    case `return`([MutationID])
  }

  /// Records that a write has failed because of the store.
  mutating func recordFailure(of write: Write, _ id: ID, _ error: StoreError) -> FailedWrite {
    guard keys[id] != nil else {
      // The sign-out itself ends the calls of the mutations.
      endFetches(write.accepted + write.rejected, .failure(.signedOut))
      return .end
    }
    emit(.storeFailed(error))
    keys[id]?.state.abandon(keepsFetches: false)
    endFetches(write.accepted + write.rejected, .failure(.store(error)))
    touch(id)
    if case .newerFormat = error {
      keys[id]?.hasFutureValue = true
      for mutation in write.confirmed {
        keys[id]?.state.fail(mutation)
        returnAnswered(mutation)
      }
      return .return(write.confirmed)
    }
    // The same write would fail every time, so the mutations are refused and their callers get the error, although the
    // server has the mutations. Their outcome counts as unknown, so that they keep their ids if they are sent again.
    if error.isPermanent { return .refuse(write.confirmed) }
    // The mutations' callers don't wait until the store works again. The mutations stay visible, and the replies to
    // them are written later.
    endQueued(write.confirmed)
    // A fetch whose reply arrived during the write must not wait for the backoff, so the next write begins immediately.
    // The fetch ends with that write, even if the write fails.
    guard let state = keys[id], !state.state.hasFetchReplies else { return .writeAgain }
    keys[id]?.failedWrites += 1
    return .writeLater(attempt: state.failedWrites + 1)
  }

  /// Discards the replies to mutations, because the resulting value can't be stored.
  ///
  /// - Returns: Whether other replies wait.
  mutating func discardReplies(to mutations: [MutationID], _ id: ID) -> Bool {
    touch(id)
    return keys[id]?.state.discardReplies(to: mutations) ?? false
  }

  // MARK: - Whole values

  /// Fetches the whole value for confirmed mutations whose reply couldn't be used, until a value includes them or the
  /// server refuses to return one.
  ///
  /// If that is in progress and the last fetch has failed, only records that the attempts of the mutations have ended.
  private mutating func fetchWhole(_ id: ID) {
    switch keys[id]?.recovery {
    case .fetching: break
    case .failing: recordThatAttemptsEnded(id)
    case nil:
      keys[id]?.recovery = .fetching
      start(.fetchWhole(id))
    }
  }

  /// Whether confirmed mutations of a key still wait for a whole value.
  func needsWholeValue(_ id: ID) -> Bool { keys[id]?.state.needsWholeValue ?? false }

  mutating func endFetchOfWhole(_ id: ID) {
    keys[id]?.recovery = nil
    release(id)
  }

  /// Records that the attempts of the mutations that wait for a whole value have ended, and ends their calls.
  ///
  /// The calls don't wait, because it may take long until a fetch succeeds. Without the records, these attempts would
  /// count as interrupted if this process ends. The records are written only once a fetch has failed: as long as the
  /// fetches succeed, a value soon includes the mutations, and their records are removed.
  mutating func recordThatAttemptsEnded(_ id: ID) {
    for mutation in keys[id]?.state.idsThatNeedWholeValue ?? [] {
      end(mutation, .success(.queued))
      // Runs to completion even if the repository is released now.
      if queue.recordUnknownOutcome(of: mutation) { start(.saveToCompletion(mutation)) }
    }
  }
}

extension StoreError {
  /// Whether the same save would fail every time.
  fileprivate var isPermanent: Bool {
    switch self {
    case .encodingFailed, .invalidKey, .collectionHasAnotherType: true
    default: false
    }
  }
}
