internal import Foundation

/// Makes the commits of a store, group by group.
///
/// A commit is durable when the medium has synchronised, for example after `fsync`, which takes far longer than the write
/// itself. A store that makes 400 commits one after the other waits for the medium 400 times.
///
/// The naive solution is to collect commits for some milliseconds and to write them as one transaction. It has three
/// faults. The delay slows down a caller that makes one commit at a time. Commits that have nothing to do with each other
/// fail together, when one of them has a precondition that doesn't hold. And a commit that reads what an earlier one of the
/// same transaction wrote finds bytes that the store hasn't recorded yet, and reports them as an external change.
///
/// Group commit avoids all three:
///
/// - **No delay.** An idle store makes a commit at once. Commits that arrive while it writes wait in ``pending``, and form
///   the next group when the store is free. Groups thus grow with the load, and without load a commit is alone in its group.
/// - **Independence.** A group ends before the first commit that depends on an earlier one of it, because it names a key
///   that the earlier one changes, or changes a key that the earlier one requires. So each commit reads, decides, and
///   succeeds or fails by itself. Saves of one key without preconditions are the exception: only the last one is
///   written, and the others share its result. See ``CommitGroup``.
/// - **One synchronisation.** ``StoreBackend/commit(group:deciding:)`` makes the whole group. A database makes it in one
///   transaction; if a statement fails, it makes each commit in a transaction of its own, so only the faulty one fails. A
///   backend that can't do that makes one commit after the other.
/// - **One order.** A commit may have to be tried again: because another process has committed before it, because corrupt
///   bytes must be quarantined first, or because the stored parts that it keeps are gone. The commits behind it then wait
///   for the next attempt too, so none overtakes it.
/// - **Publication.** Once they are durable, all commits are recorded and sent in the order they arrived, also those that
///   were not written because of a later save. If that save must be tried again, the durable commits that arrived after
///   the replaced one wait too. Until they are recorded, ``ChangeChecker`` doesn't read their keys.
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
  /// - Returns: Whether no other commit was waiting, so that the caller must schedule ``performPending()``.
  func add(_ commit: PendingCommit) -> Bool {
    pending.append(commit)
    return pending.count == 1
  }

  /// Makes the pending commits, group by group.
  ///
  /// Every other call does this first, and therefore finds the values that were committed before it arrived.
  func performPending() {
    while !pending.isEmpty { perform(CommitGroup.take(from: &pending) { readPart($0) }) }
  }

  /// Reads a part of a stored value, for a save that keeps most of its elements.
  ///
  /// - Returns: `nil` if it can't be read. The save then encodes the whole part. If the whole store can't be used, the
  ///   commit fails with the same error.
  private func readPart(_ name: String) -> Data? {
    do throws(StoreError) {
      return try contents.withBackend(retriesAfterQuarantine: false) { (backend: inout Backend) throws(StoreError) in
        try backend.read(name)
      }
    } catch {
      return nil
    }
  }

  private func perform(_ group: CommitGroup) {
    var waiting = group.writing
    var unpublished = group.all
    var wasQuarantined = false
    // When a commit must be tried again, the attempt prepared those behind it in vain. So attempts are small after that,
    // and grow again as they succeed.
    var limit = waiting.count
    defer { checker.wakeIfCheckIsNeeded() }
    while !waiting.isEmpty {
      var tried = Array(waiting.prefix(limit))
      let untried = waiting.dropFirst(limit)
      var results: [Result<Bool, StoreError>]
      let wasWatching = checker.isWatching
      do throws(StoreError) {
        let madeCount: Int
        (results, madeCount) = try attempt(tried)
        limit = 2 * max(1, madeCount)
        try quarantineObstacles(of: tried, &results)
      } catch {
        var result = Result<Bool, StoreError>.failure(error)
        if case .corruptStore = error {
          // The whole store was quarantined, with all that was read and written, so it is repeated once. This includes
          // the commits of earlier attempts that aren't sent yet.
          let lost = unpublished.filter { $0.successor == nil && $0.isMade }
          for commit in lost { commit.discardResult() }
          tried = lost + tried
          for commit in tried { commit.discardReads() }
          checker.discardChecksOfCommits()
          if !wasQuarantined { result = .success(false) }
          wasQuarantined = true
        }
        results = tried.map { _ in result }
      }
      checker.publishChecksOfCommits()
      waiting = zip(tried, results).compactMap { processResult(of: $0, $1) ? nil : $0 } + untried
      let finished = unpublished.prefix(while: \.hasResult)
      for commit in finished { publish(commit) }
      unpublished.removeFirst(finished.count)
      checker.unrecordedNames = Set(unpublished.lazy.filter(\.isMade).flatMap { $0.keys.map(\.name) })
      if wasWatching { checker.startWatching() }
    }
  }

  /// Makes commits, up to the first one that must wait for the next attempt.
  ///
  /// A commit must wait if another process has committed before it, or if its decision is ``PendingCommit/Verdict/retry``.
  /// The commits behind it wait too, so that none overtakes it.
  ///
  /// - Returns: Whether each commit was made, and the number of commits before the first one that waits.
  private func attempt(
    _ waiting: [PendingCommit]
  ) throws(StoreError) -> (results: [Result<Bool, StoreError>], beforeWaiting: Int) {
    var firstToWait = Int.max
    var removed: Set<String> = []
    let results = try contents.withBackend(retriesAfterQuarantine: false) {
      (backend: inout Backend) throws(StoreError) in
      try backend.commit(group: waiting.map(\.writes)) { (index, backend: inout Backend) throws(StoreError) in
        // A backend may begin again with the first commit.
        if index <= firstToWait { firstToWait = .max }
        waiting[index].discardReads()
        if index > firstToWait { return .abandon }
        if index == 0 {
          try checker.readExternalChanges(from: &backend)
        } else if try checker.findsExternalChanges(with: &backend, besides: removed) {
          firstToWait = index
          return .abandon
        }
        let decision = try waiting[index].decide(reading: &backend)
        if case .retry = waiting[index].verdict { firstToWait = index }
        if case .proceed(let names) = decision { removed.formUnion(names) }
        return decision
      }
    }
    return (results, min(firstToWait, waiting.count))
  }

  /// Quarantines the stored bytes that prevent commits from being made, before they are tried again.
  ///
  /// - Parameters:
  ///   - waiting: The commits.
  ///   - results: The results of the commits. If a quarantine fails, its error becomes the commit's result.
  /// - Throws: ``StoreError/corruptStore(movedTo:reason:)`` only.
  private func quarantineObstacles(
    of waiting: [PendingCommit], _ results: inout [Result<Bool, StoreError>]
  ) throws(StoreError) {
    for (index, commit) in waiting.enumerated() where results[index] == .success(false) && commit.verdict == .retry {
      do throws(StoreError) {
        for key in commit.keys { try quarantineObstacle(of: key) }
      } catch {
        if case .corruptStore = error { throw error }
        results[index] = .failure(error)
      }
    }
  }

  private func quarantineObstacle(of key: some AnyPendingKey) throws(StoreError) {
    let key = key.typed
    guard let (bytes, reason) = key.obstacle else { return }
    if try contents.quarantine(bytes, of: key.slot, reason: reason) != nil { key.recordQuarantine() }
    key.discardRead()
  }

  /// Processes the result of an attempt, and prepares the commit for the next one if it must be tried again.
  ///
  /// - Returns: Whether the commit has its final result.
  private func processResult(of commit: PendingCommit, _ result: Result<Bool, StoreError>) -> Bool {
    do throws(StoreError) {
      defer { for key in commit.keys { flush(key) } }
      for key in commit.keys { reconcileRead(of: key) }
      switch (result, commit.verdict) {
      case (.failure(let error), _), (.success(false), .fail(let error)): throw error
      case (.success(true), _): commit.recordResult(.success(()))
      case (.success(false), _):
        try commit.encode { readPart($0) }
        return false
      }
    } catch {
      // A commit that is durable has succeeded, even if something failed afterwards.
      commit.recordResult(result == .success(true) ? .success(()) : .failure(error))
    }
    return true
  }

  /// Reconciles the last read of a key, which may have found an external change.
  private func reconcileRead(of key: some AnyPendingKey) {
    let key = key.typed
    guard let result = key.takeRead() else { return }
    // Corrupt bytes that don't prevent the commit stay where they are, for a call that reads them.
    if case .corrupt = result { return }
    contents.reconcile(result, key.slot)
  }

  /// Sends the changes of a commit if it is durable, and completes it.
  private func publish(_ commit: PendingCommit) {
    if case .failure(let error) = commit.result { return commit.complete(.failure(error)) }
    let (made, released) = contents.record(commit)
    for key in commit.keys { flush(key) }
    commit.complete(.success(made))
    // The replaced values are released after the caller was resumed, because releasing them may take long.
    extendLifetime(released)
  }

  private func flush(_ key: some AnyPendingKey) {
    key.typed.slot.topic.flush()
  }
}
