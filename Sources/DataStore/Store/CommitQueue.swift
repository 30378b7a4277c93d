internal import Foundation

/// Makes the commits of a store, group by group.
///
/// A commit is durable once the medium is synchronized, for example by `fsync`. The synchronization takes far longer
/// than the write itself. A store that makes 400 commits one after the other waits for the medium 400 times.
///
/// The naive solution is to collect commits for some milliseconds and to write them as one transaction. It has three
/// faults. The delay slows down a caller that makes one commit at a time. Unrelated commits fail together when one of
/// them has a precondition that doesn't hold. And if a commit reads what an earlier commit of its transaction wrote, it
/// finds bytes that the store hasn't recorded yet, and reports them as an external change.
///
/// Group commit has none of these faults, because of two rules. The first one avoids the delay, and the second one the
/// other two faults:
///
/// - **No delay.** An idle store makes a commit at once. Commits that arrive while the store writes wait in
///   ``pending``, and form the next group when the store is free. Groups thus grow with the load, and without load a
///   commit is alone in its group.
/// - **Independence.** A group ends before the first commit that depends on an earlier commit of the group. A commit
///   depends on another if it changes or requires a key that the other one changes, or changes a key that the other one
///   requires. So each commit reads, decides, and succeeds or fails by itself. Saves of one key without preconditions
///   are the exception: only the last save is written, and the others share its result. See ``CommitGroup``.
///
/// Three more rules give the commits of a group the guarantees of separate commits:
///
/// - **One synchronization.** ``StoreBackend/commit(group:deciding:)`` makes the whole group. A database makes it in
///   one transaction. If a statement fails, the database makes each commit in a transaction of its own, so only the
///   faulty commit fails. Some failures concern every commit, such as a lock that another process holds for too long,
///   or a server that can't be reached. Then the remaining commits fail without an attempt. A backend that has no
///   transactions makes one commit after the other.
/// - **One order.** A commit may have to be tried again: because another process has committed before it, because
///   stored bytes must be quarantined first, or because the stored parts that it should keep are gone. The commits
///   behind it then wait for the next attempt too, so none overtakes it.
/// - **Publication.** Once commits are durable, all of them are recorded and sent in the order they arrived, including
///   those that a later save has replaced. While that save has no result, the commits that arrived after the replaced
///   one aren't sent either. ``ChangeChecker`` doesn't read the keys of a durable commit before the commit is recorded.
///
/// A queue belongs to one store and is used in its isolation only.
final class CommitQueue<Backend: StoreBackend> {
  private let contents: StoreContents<Backend>
  private let checker: ChangeChecker<Backend>
  /// The commits that have arrived and aren't in a group yet, in order.
  private var pending: [PendingCommit] = []

  init(_ contents: StoreContents<Backend>, _ checker: ChangeChecker<Backend>) {
    self.contents = contents
    self.checker = checker
  }

  /// Adds a commit.
  ///
  /// - Returns: Whether no other commit was pending, so that the caller must schedule ``performPending()``.
  func add(_ commit: PendingCommit) -> Bool {
    pending.append(commit)
    return pending.count == 1
  }

  /// Makes the pending commits, group by group.
  ///
  /// A call that reads or erases stored values does this first, and therefore finds the values of all commits that
  /// arrived before it.
  func performPending() {
    // The commits of a group end together, so the first one determines how long they may wait.
    while let first = pending.first {
      contents.makingCommits(waitingSince: first.start) {
        perform(CommitGroup.take(from: &pending) { readPart($0) })
      }
    }
  }

  /// Reads a part of a stored value, for a save that copies the unchanged elements of the part.
  ///
  /// - Returns: The stored bytes of the part; `nil` if there are none or they can't be read. The save then encodes the
  ///   whole part. An error is not reported here: if the store can't be used, the commit fails with an error of its
  ///   own.
  private func readPart(_ name: String) -> Data? {
    do throws(StoreError) {
      return try contents.withBackend(retriesAfterQuarantine: false) { (backend: inout Backend) throws(StoreError) in
        try backend.read(name)
      }
    } catch {
      return nil
    }
  }

  /// Makes the commits of a group, and completes each of them.
  ///
  /// It makes attempts until every commit has a result. After each attempt, it records and sends the commits up to the
  /// first one without a result.
  private func perform(_ group: CommitGroup) {
    var waiting = group.commitsToWrite
    var unpublished = group.all
    var storeWasQuarantined = false
    // If a commit must be tried again, the backend has prepared the writes of the commits behind it in vain. For
    // example, `FileBackend` has staged and synchronized their files. So the next attempt is limited to twice the
    // number of commits before the one that must be tried again, but to no fewer than two. The limit grows again as
    // attempts succeed.
    var limit = waiting.count
    defer { checker.wakeIfCheckIsNeeded() }
    while !waiting.isEmpty {
      var commits = Array(waiting.prefix(limit))
      let untried = waiting.dropFirst(limit)
      var outcomes: [CommitOutcome]
      let wasWatching = checker.isWatching
      do throws(StoreError) {
        let decidedCount: Int
        (outcomes, decidedCount) = try attempt(commits)
        limit = 2 * max(1, decidedCount)
        try quarantineObstacles(of: commits, &outcomes)
      } catch {
        var outcome = CommitOutcome.failed(error)
        if case .corruptStore = error {
          // The whole store was quarantined, and with it what this attempt has read and written. So the commits of the
          // attempt are tried again, once, in the empty store that has replaced the corrupt one. The same holds for the
          // commits that earlier attempts made and that aren't sent yet, because they are lost too.
          let lost = unpublished.filter { $0.successor == nil && $0.isMade }
          for commit in lost { commit.discardResult() }
          commits = lost + commits
          for commit in commits { commit.discardReads() }
          checker.discardChecksOfAttempt()
          if !storeWasQuarantined { outcome = .notMade }
          storeWasQuarantined = true
        }
        outcomes = commits.map { _ in outcome }
      }
      checker.endAttempt(madeAll: outcomes.allSatisfy { $0 == .made })
      checker.publishChecksOfAttempt()
      waiting = zip(commits, outcomes).compactMap { recordResult(of: $0, from: $1) ? nil : $0 } + untried
      let finished = unpublished.prefix(while: \.hasResult)
      for commit in finished { recordAndSend(commit) }
      unpublished.removeFirst(finished.count)
      checker.unrecordedNames = Set(unpublished.lazy.filter(\.isMade).flatMap { $0.keys.map(\.name) })
      // If the watch has broken during the attempt, it starts again, with a check of all observed keys. The check skips
      // the `unrecordedNames`, so these are set first; otherwise it would mistake commits that aren't recorded yet for
      // external changes.
      if wasWatching { checker.startWatching() }
    }
  }

  /// Makes commits, up to the first one that must wait for the next attempt.
  ///
  /// A commit must wait if its verdict is ``PendingCommit/Verdict/retry``, or if it isn't the first one and there are
  /// external changes, which the next attempt reads. The commits behind it wait too, so that none overtakes it.
  ///
  /// - Returns: The outcome of each commit, and the number of commits before the first one that waits.
  /// - Throws: ``StoreError/corruptStore(movedTo:reason:)`` only.
  private func attempt(
    _ commits: [PendingCommit]
  ) throws(StoreError) -> (outcomes: [CommitOutcome], decidedCount: Int) {
    /// The index of the first commit that must wait; `Int.max` if no commit must wait.
    var firstToWait = Int.max
    /// The names that the attempt has removed so far, which the backend may report as if they were changed externally.
    var removed: Set<String> = []
    let results = try contents.withBackend(retriesAfterQuarantine: false) {
      (backend: inout Backend) throws(StoreError) in
      try backend.commit(group: commits.map(\.writes)) { (index, backend: inout Backend) throws(StoreError) in
        // A backend may repeat the decision about this commit, or all decisions from the first one on. Such a
        // repetition discards an earlier decision that this commit or a later one must wait.
        if index <= firstToWait { firstToWait = .max }
        commits[index].discardReads()
        if index > firstToWait { return .abandon }
        // External changes from before the first commit are read at once, because nothing of this attempt is written
        // yet. Those from before a later commit would be mixed with the attempt's own changes, so that commit waits for
        // the next attempt.
        if index == 0 {
          try checker.readExternalChanges(from: &backend)
        } else if try checker.findsExternalChanges(with: &backend, besides: removed) {
          firstToWait = index
          return .abandon
        }
        let decision = try commits[index].decide(reading: &backend)
        if case .retry = commits[index].verdict { firstToWait = index }
        if case .proceed(let removals) = decision { removed.formUnion(removals) }
        return decision
      }
    }
    return (results.map(CommitOutcome.init), min(firstToWait, commits.count))
  }

  /// Quarantines the corrupt bytes that prevent commits from being made, so that the commits can be tried again.
  ///
  /// An unusable value is quarantined by the commit itself, so that it isn't missing in between, and stays if the commit
  /// fails.
  ///
  /// - Parameters:
  ///   - commits: The commits of the attempt.
  ///   - outcomes: The outcomes of the commits. If a quarantine fails, its error becomes the commit's outcome.
  /// - Throws: ``StoreError/corruptStore(movedTo:reason:)`` only.
  private func quarantineObstacles(of commits: [PendingCommit], _ outcomes: inout [CommitOutcome]) throws(StoreError) {
    for (index, commit) in commits.enumerated() where outcomes[index] == .notMade && commit.verdict == .retry {
      do throws(StoreError) {
        for key in commit.keys { try quarantineObstacle(of: key) }
      } catch {
        if case .corruptStore = error { throw error }
        outcomes[index] = .failed(error)
      }
    }
  }

  private func quarantineObstacle(of key: some AnyPendingKey) throws(StoreError) {
    let key = key.typed
    key.prepareQuarantine(at: contents.now())
    guard let (bytes, reason) = key.obstacle else { return }
    if try contents.quarantine(bytes, of: key.slot, reason: reason) != nil { key.recordQuarantine() }
    key.discardRead()
  }

  /// Records the result of a commit, or prepares its writes again for the next attempt.
  ///
  /// Also sends the external changes that the reads of the commit have found. They happened before the commit, whose
  /// own changes ``recordAndSend(_:)`` sends later.
  ///
  /// - Returns: Whether the commit has its result. Otherwise it must be tried again.
  private func recordResult(of commit: PendingCommit, from outcome: CommitOutcome) -> Bool {
    var hasReconciled = false
    for key in commit.keys where reconcileRead(of: key) { hasReconciled = true }
    defer { if hasReconciled { contents.flush() } }
    switch (outcome, commit.verdict) {
    case (.made, _): commit.recordResult(.success(()))
    case (.failed(let error), _), (.notMade, .fail(let error)): commit.recordResult(.failure(error))
    case (.notMade, _):
      do throws(StoreError) {
        try commit.encode { readPart($0) }
        return false
      } catch {
        commit.recordResult(.failure(error))
      }
    }
    return true
  }

  /// Reconciles the last read of a key, which may have found an external change.
  ///
  /// - Returns: Whether the read was reconciled, so that the topic of the key may have changes to send.
  private func reconcileRead(of key: some AnyPendingKey) -> Bool {
    let key = key.typed
    switch key.takeRead() {
    case nil, .unchanged: return false
    // The commit has failed, either because the bytes could not be quarantined, or for another reason. In both cases
    // the bytes stay where they are until the next call for the key.
    case .corrupt: return false
    case .some(let result):
      contents.reconcile(result, key.slot)
      return true
    }
  }

  /// Sends the changes of a commit if it is durable, and completes it.
  private func recordAndSend(_ commit: PendingCommit) {
    if case .failure(let error) = commit.result { return commit.complete(.failure(error)) }
    let (storeCommit, replacedValues) = contents.record(commit)
    contents.flush(own: commit)
    commit.complete(.success(storeCommit))
    // The replaced values are released after the caller was resumed, because releasing them may take long.
    extendLifetime(replacedValues)
  }
}

/// The outcome of an attempt to make a commit.
private enum CommitOutcome: Equatable {
  case made
  /// The commit must be tried again, or fails because its decision was to fail. ``PendingCommit/verdict`` says which.
  case notMade
  case failed(StoreError)

  init(_ result: Result<Bool, StoreError>) {
    switch result {
    case .success(true): self = .made
    case .success(false): self = .notMade
    case .failure(let error): self = .failed(error)
    }
  }
}
