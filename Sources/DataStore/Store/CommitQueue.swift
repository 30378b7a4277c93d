internal import Foundation

/// Makes the commits of a store, group by group.
///
/// Belongs to one store and is used in its isolation only.
final class CommitQueue<Backend: StoreBackend> {
  private let contents: StoreContents<Backend>
  private let checker: ChangeChecker<Backend>
  /// Commits that arrived and are not made yet, in order.
  private var pending: [PendingCommit] = []

  init(_ contents: StoreContents<Backend>, _ checker: ChangeChecker<Backend>) {
    self.contents = contents
    self.checker = checker
  }

  /// Adds a commit.
  ///
  /// - Returns: Whether it is the first one that waits, so that ``performPending()`` must be called.
  func add(_ commit: PendingCommit) -> Bool {
    pending.append(commit)
    return pending.count == 1
  }

  /// Makes the commits that wait, group by group.
  ///
  /// Every other call does so first, and therefore finds what was committed before it came.
  func performPending() {
    while !pending.isEmpty { perform(CommitGroup.take(from: &pending) { readPart($0) }) }
  }

  /// Reads a part of a value, for a save that keeps most of it.
  ///
  /// - Returns: `nil` if it can't be read; then the save writes all of the part anew. If the whole store can't be used, the
  ///   commit meets the same error.
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
    // What waits behind a commit that is held back is prepared in vain, so few are tried until it goes well.
    var limit = waiting.count
    defer { checker.wakeIfCheckIsOwed() }
    while !waiting.isEmpty {
      let tried = Array(waiting.prefix(limit))
      var results: [Result<Bool, StoreError>]
      let wasWatching = checker.isWatching
      do throws(StoreError) {
        let madeCount: Int
        (results, madeCount) = try attempt(tried)
        limit = 2 * max(1, madeCount)
        try clearTheWay(for: tried, &results)
      } catch {
        var result = Result<Bool, StoreError>.failure(error)
        if case .damaged = error {
          // What was written before is gone with the rest, and so is what was read: all of it is done again, once.
          for commit in tried { commit.discardReads() }
          checker.discardChecksOfCommits()
          if !wasQuarantined { result = .success(false) }
          wasQuarantined = true
        }
        results = tried.map { _ in result }
      }
      checker.publishChecksOfCommits()
      if wasWatching { checker.startWatching() }
      waiting = zip(tried, results).compactMap { settle($0, $1) ? nil : $0 } + waiting.dropFirst(tried.count)
      for commit in unpublished where commit.isSettled { publish(commit) }
      unpublished.removeAll(where: \.isSettled)
    }
  }

  /// Makes commits, all that come before the first one that has to wait.
  ///
  /// One waits for the next attempt if another process has committed before it, or if something is in its way. Those
  /// behind it wait too, so that no commit overtakes another one.
  ///
  /// - Returns: For each whether it was made; and the number of those before the first one that waits.
  private func attempt(
    _ waiting: [PendingCommit]
  ) throws(StoreError) -> (results: [Result<Bool, StoreError>], beforeWaiting: Int) {
    var firstToWait = Int.max
    var removed: Set<String> = []
    let results = try contents.withBackend(retriesAfterQuarantine: false) {
      (backend: inout Backend) throws(StoreError) in
      try backend.commit(group: waiting.map(\.writes)) { (index, backend: inout Backend) throws(StoreError) in
        // A backend may ask again, from the first one on.
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
        if case .again = waiting[index].verdict { firstToWait = index }
        if case .proceed(let names) = decision { removed.formUnion(names) }
        return decision
      }
    }
    return (results, min(firstToWait, waiting.count))
  }

  /// Quarantines what is in the way of commits that will be tried again.
  ///
  /// - Parameters:
  ///   - waiting: The commits.
  ///   - results: Their results; one whose way can't be cleared fails.
  /// - Throws: ``StoreError/damaged(movedTo:reason:)`` only.
  private func clearTheWay(
    for waiting: [PendingCommit], _ results: inout [Result<Bool, StoreError>]
  ) throws(StoreError) {
    for (index, commit) in waiting.enumerated() where results[index] == .success(false) && commit.verdict == .again {
      do throws(StoreError) {
        for key in commit.keys { try clearTheWay(for: key) }
      } catch {
        if case .damaged = error { throw error }
        results[index] = .failure(error)
      }
    }
  }

  private func clearTheWay(for key: some AnyPendingKey) throws(StoreError) {
    let key = key.typed
    guard let (bytes, reason) = key.obstacle else { return }
    if try contents.quarantine(bytes, of: key.slot, reason: reason) != nil { key.recordQuarantine() }
    key.discardRead()
  }

  /// Takes in the result of an attempt, and prepares the next one if there must be one.
  ///
  /// - Returns: Whether the commit has its result.
  private func settle(_ commit: PendingCommit, _ result: Result<Bool, StoreError>) -> Bool {
    do throws(StoreError) {
      defer { for key in commit.keys { flush(key) } }
      for key in commit.keys { reconcileRead(of: key) }
      switch (result, commit.verdict) {
      case (.failure(let error), _), (.success(false), .fail(let error)): throw error
      case (.success(true), _): commit.settle(.success(()))
      case (.success(false), _):
        try commit.encode { readPart($0) }
        return false
      }
    } catch {
      // A commit that is durable succeeded, whatever failed afterwards.
      commit.settle(result == .success(true) ? .success(()) : .failure(error))
    }
    return true
  }

  /// Records what a commit read, if it is an external change.
  private func reconcileRead(of key: some AnyPendingKey) {
    let key = key.typed
    guard let result = key.takeRead() else { return }
    // Corrupt bytes that are in no way stay, for a call that reads them.
    if case .corrupt = result { return }
    contents.reconcile(result, key.slot)
  }

  /// Sends the changes of a commit that is durable, and completes it.
  private func publish(_ commit: PendingCommit) {
    if case .failure(let error) = commit.settledResult { return commit.complete(.failure(error)) }
    let (made, released) = contents.record(commit)
    for key in commit.keys { flush(key) }
    commit.complete(.success(made))
    // Until here no value was released, because that may take long.
    extendLifetime(released)
  }

  private func flush(_ key: some AnyPendingKey) {
    key.typed.slot.topic.flush()
  }
}
