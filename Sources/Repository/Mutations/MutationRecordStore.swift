internal import DataStore
internal import Foundation
internal import Multicast

/// Writes the records of mutations.
///
/// Writes that arrive during a commit share the next commit.
///
/// A commit that adds mutations also saves the counter; see ``MutationCounter``. A commit that withdraws mutations also
/// saves ``MutationWithdrawals``. A commit that replaces a record requires that the stored record still has the
/// expected tag, because another process may have changed the record or completed the mutation; see ``Write``.
///
/// ``perform(_:_:isolation:)`` enqueues its write before it suspends, so an actor's writes are enqueued in the order of
/// its calls.
final class MutationRecordStore: Sendable {
  typealias Record = MutationRecord

  enum Write: Sendable {
    /// Adds a record with the next sequence number.
    ///
    /// `replacing` names the record of a refused or conflicted mutation that is to be sent again or replaced. The same
    /// commit removes that record, or overwrites it if the added record has the same id.
    ///
    /// Fails with ``DataStore/StoreError/preconditionFailed(_:)`` if the user has signed out or in since the
    /// requirement was made.
    case add(
      @Sendable (_ sequence: UInt64) -> Record, replacing: (id: MutationID, tag: StoreTag?)?, UserRequirement?)
    /// Replaces a record.
    ///
    /// A record that no longer has the tag `tag` stays if `unlessChanged` is `true`. If `unlessChanged` is `false`, it
    /// is replaced too, except that a live record doesn't replace one with a verdict.
    case replace(Record, tag: StoreTag?, unlessChanged: Bool)
    case remove
    /// Removes a record.
    ///
    /// If another process has changed the record, removes it only if the changed record meets the condition.
    case removeIf(RemovalCondition, tag: StoreTag)
  }

  /// The condition under which a record is removed even if another process has changed it.
  enum RemovalCondition: Sendable {
    /// The changed record isn't marked as possibly sent, so the process that changed it isn't sending the mutation.
    case unsent
    /// The changed record still awaits a decision of the app, because its mutation is refused or in conflict.
    case undecided
    /// The record hasn't changed.
    case unchanged

    func isMet(by record: Record) -> Bool {
      switch self {
      case .unsent: !record.isMarked
      case .undecided: !record.isLive
      case .unchanged: false
      }
    }
  }

  /// The outcome of a write.
  enum Outcome: Sendable {
    case written(Record, StoreCommit)
    case removed(StoreCommit)
    /// Nothing was written or removed, because the record no longer exists: another process has removed it, or it was
    /// erased after a sign-out.
    ///
    case gone
    /// Nothing was written or removed: another write of this repository may have removed the record, or another process
    /// sends the mutation or has requeued it.
    case unchanged
    /// Nothing was written: another process, or another write of this repository, has changed or removed the record.
    case kept
    /// Nothing was written, because another process has refused the mutation or found it in conflict.
    case keptVerdict
  }

  /// A write, and the call that waits for it.
  private struct Turn {
    let id: MutationID
    var write: Write
    /// Whether a commit with the write has failed, and may nevertheless have been made.
    var mayBeMade = false
    /// Whether the write is repeated on a record that another process has changed.
    var isRepeated = false
    let continuation: CheckedContinuation<Result<Outcome, StoreError>, Never>
  }

  /// The writes that wait for the next commit, and whether ``writeAll()`` is running.
  private struct WriteState {
    var waiting: [Turn] = []
    var isWriting = false
    /// What the last run knew.
    ///
    /// Another process may have changed these values since. Then the next commit fails, and reads them again.
    var shared = Shared()
  }

  /// The stored values that the mutations share, as far as they are known.
  private struct Shared {
    var counter: (value: MutationCounter, tag: StoreTag?)?
    var withdrawals: (value: MutationWithdrawals, tag: StoreTag?)?
  }

  private let store: any KeyValueStore
  private let own: OwnCommits
  private let keys: MutationKeys
  private let tasks: OwnedTasks
  private let writeState = Lock(WriteState())

  init(_ store: any KeyValueStore, _ own: OwnCommits, _ keys: MutationKeys, _ tasks: OwnedTasks) {
    self.store = store
    self.own = own
    self.keys = keys
    self.tasks = tasks
  }

  /// Performs a write, and returns its outcome when that is durable.
  ///
  /// The write runs to completion: cancelling the caller doesn't cancel it.
  func perform(
    _ write: Write, _ id: MutationID, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Outcome {
    try await withCheckedContinuation { continuation in
      let turn = Turn(id: id, write: write, continuation: continuation)
      let isFirst = writeState.withLock { state in
        defer { state.isWriting = true }
        state.waiting.append(turn)
        return !state.isWriting
      }
      // This isn't one of `tasks`, because those are cancelled with their owner, and callers wait for the result.
      if isFirst { Task(executorPreference: tasks.executor) { await self.writeAll() } }
    }.get()
  }

  private func writeAll() async {
    var shared = writeState.withLock(\.shared)
    while true {
      let turns = writeState.withLock { state in
        defer { state.waiting = [] }
        state.isWriting = !state.waiting.isEmpty
        state.shared = shared
        return state.waiting
      }
      if turns.isEmpty { return }
      let (immediate, postponed) = separatePostponed(turns)
      await write(immediate, &shared)
      for turn in postponed { await writeUnlessRemoved(turn, &shared) }
    }
  }

  /// Separates the replacements of records that are also removed.
  ///
  /// Such a replacement is postponed, so that it doesn't undo the removal. Several replacements of one record needn't
  /// be separated, because the batch keeps the last.
  private func separatePostponed(_ turns: [Turn]) -> (immediate: [Turn], postponed: [Turn]) {
    var removedIDs: Set<MutationID> = []
    for turn in turns {
      switch turn.write {
      case .remove, .removeIf: removedIDs.insert(turn.id)
      case .add(_, let replaced?, _) where replaced.id != turn.id: removedIDs.insert(replaced.id)
      case .add, .replace: break
      }
    }
    if removedIDs.isEmpty { return (turns, []) }
    let isPostponed = { (turn: Turn) in
      if case .replace = turn.write { removedIDs.contains(turn.id) } else { false }
    }
    return (turns.filter { !isPostponed($0) }, turns.filter(isPostponed))
  }

  /// Replaces a record, unless the removal that it was postponed for has succeeded.
  private func writeUnlessRemoved(_ turn: Turn, _ shared: inout Shared) async {
    do throws(StoreError) {
      if try await store.load(keys.record(turn.id)) != nil { return await write([turn], &shared) }
      turn.continuation.resume(returning: .success(.unchanged))
    } catch {
      turn.continuation.resume(returning: .failure(error))
    }
  }

  private func write(_ turns: [Turn], _ shared: inout Shared) async {
    var turns = turns
    while !turns.isEmpty {
      do throws(StoreError) {
        let outcomes = try await commit(turns, &shared)
        for (turn, outcome) in zip(turns, outcomes) { turn.continuation.resume(returning: .success(outcome)) }
        return
      } catch {
        if case .preconditionFailed(let keyName) = error {
          if keyName == keys.counter.keyName {
            shared.counter = nil
            continue
          }
          if keyName == keys.withdrawals.keyName {
            shared.withdrawals = nil
            continue
          }
          let outdated = turns.filter { userRequirement(of: $0)?.key.keyName == keyName }
          if !outdated.isEmpty {
            // The user has signed out or in since the requirements of these writes were made.
            for turn in outdated { turn.continuation.resume(returning: .failure(error)) }
            turns.removeAll { userRequirement(of: $0)?.key.keyName == keyName }
            continue
          }
          if let index = turns.firstIndex(where: { requiredRecordName(of: $0) == keyName }) {
            await retry(turns.remove(at: index), &shared)
            continue
          }
        }
        if turns.count == 1 { return turns[0].continuation.resume(returning: .failure(error)) }
        // Written one by one, so that a write that fails doesn't fail the others.
        for var turn in turns {
          turn.mayBeMade = true
          await writeUnlessMade(turn, &shared)
        }
        return
      }
    }
  }

  /// Performs a write again, unless the commit with it was made although it has failed.
  private func writeUnlessMade(_ turn: Turn, _ shared: inout Shared) async {
    do throws(StoreError) {
      // The record has this id only because of the earlier commit, or it still has the verdict that the write replaces.
      if case .add = turn.write, let stored = try await store.load(keys.record(turn.id)), stored.value.isLive {
        let commit = StoreCommit(revision: stored.revision, tag: stored.tag, savedAt: stored.savedAt)
        return turn.continuation.resume(returning: .success(.written(stored.value, commit)))
      }
      await write([turn], &shared)
    } catch {
      turn.continuation.resume(returning: .failure(error))
    }
  }

  /// The name of the record whose stored version a write requires.
  private func requiredRecordName(of turn: Turn) -> StoreKeyName? {
    switch turn.write {
    case .add(_, let replaced, _): replaced.map { keys.record($0.id).keyName }
    case .replace, .removeIf: keys.record(turn.id).keyName
    case .remove: nil
    }
  }

  private func userRequirement(of turn: Turn) -> UserRequirement? {
    if case .add(_, _, let requirement) = turn.write { requirement } else { nil }
  }

  /// Repeats a write that failed because its record has changed, if the write still applies to the stored record.
  private func retry(_ turn: Turn, _ shared: inout Shared) async {
    do throws(StoreError) {
      var repeated = turn
      switch turn.write {
      case .replace(_, _, unlessChanged: true):
        return turn.continuation.resume(returning: .success(.kept))
      case .replace(var record, _, unlessChanged: false):
        guard let stored = try await store.load(keys.record(turn.id)) else { break }
        // If another process has taken over the sending and stored a verdict, a live record must not replace it.
        if record.isLive, !stored.value.isLive {
          return turn.continuation.resume(returning: .success(.keptVerdict))
        }
        // The server may have made the change at an attempt of the other process.
        if stored.value.isOutcomeUnknown || stored.value.isMarked { record.isOutcomeUnknown = true }
        repeated.isRepeated = true
        repeated.write = .replace(record, tag: stored.tag, unlessChanged: false)
        return await write([repeated], &shared)
      case .add(let makeRecord, let replaced?, let requirement):
        guard let stored = try await store.load(keys.record(replaced.id)) else { break }
        // If the record is live, another process has requeued its mutation, or sends it.
        guard !stored.value.isLive else { return turn.continuation.resume(returning: .success(.unchanged)) }
        repeated.write = .add(makeRecord, replacing: (replaced.id, stored.tag), requirement)
        return await write([repeated], &shared)
      case .removeIf(let condition, _):
        guard let stored = try await store.load(keys.record(turn.id)) else {
          // The commit that removed the record also added the mutation to the withdrawals.
          if turn.mayBeMade, try await readWithdrawals().value.contains(turn.id) {
            let commit = StoreCommit(revision: 0, tag: StoreTag(), savedAt: .distantPast)
            return turn.continuation.resume(returning: .success(.removed(commit)))
          }
          break
        }
        guard condition.isMet(by: stored.value) else {
          return turn.continuation.resume(returning: .success(.unchanged))
        }
        repeated.write = .removeIf(condition, tag: stored.tag)
        return await write([repeated], &shared)
      case .add(_, nil, _), .remove: preconditionFailure("Only a write that requires a record is repeated.")
      }
      turn.continuation.resume(returning: .success(.gone))
    } catch {
      turn.continuation.resume(returning: .failure(error))
    }
  }

  private func commit(_ turns: [Turn], _ shared: inout Shared) async throws(StoreError) -> [Outcome] {
    var batch = StoreBatch()
    // For each write, the record that it stores, or `nil` if it removes one.
    var storedRecords: [Record?] = []
    let isAdding = turns.contains { if case .add = $0.write { true } else { false } }
    if isAdding, shared.counter == nil { shared.counter = try await readCounter() }
    var counter = shared.counter ?? (MutationCounter(), nil)
    let withdrawn = turns.compactMap(withdrawnID(of:))
    if !withdrawn.isEmpty, shared.withdrawals == nil { shared.withdrawals = try await readWithdrawals() }
    var withdrawals = shared.withdrawals ?? (MutationWithdrawals(), nil)
    for turn in turns {
      let key = keys.record(turn.id)
      switch turn.write {
      case .add(let makeRecord, let replaced, let requirement):
        requirement?.add(to: &batch)
        counter.value.last += 1
        let record = makeRecord(counter.value.last)
        batch.save(record, for: key)
        if let replaced {
          if replaced.id != turn.id { batch.remove(keys.record(replaced.id)) }
          batch.require(replaced.tag, of: keys.record(replaced.id))
        }
        storedRecords.append(record)
      case .replace(let record, let tag, _):
        batch.save(record, for: key)
        batch.require(tag, of: key)
        storedRecords.append(record)
      case .remove:
        batch.remove(key)
        storedRecords.append(nil)
      case .removeIf(_, let tag):
        batch.remove(key)
        batch.require(tag, of: key)
        storedRecords.append(nil)
      }
    }
    if isAdding {
      batch.save(counter.value, for: keys.counter)
      batch.requireFound(counter.tag, of: keys.counter)
    }
    if !withdrawn.isEmpty {
      withdrawals.value.add(withdrawn)
      batch.save(withdrawals.value, for: keys.withdrawals)
      batch.requireFound(withdrawals.tag, of: keys.withdrawals)
    }
    let added = turns.compactMap { turn in if case .add = turn.write { turn.id } else { nil } }
    let commit = try await own.commit(
      batch, as: turns.contains(where: \.isRepeated) ? .external : .known(adding: Set(added)))
    if isAdding { shared.counter = (counter.value, commit.tag) }
    if !withdrawn.isEmpty { shared.withdrawals = (withdrawals.value, commit.tag) }
    return storedRecords.map { $0.map { .written($0, commit) } ?? .removed(commit) }
  }

  /// The id of the mutation that a write withdraws; see ``MutationWithdrawals``.
  private func withdrawnID(of turn: Turn) -> MutationID? {
    switch turn.write {
    case .removeIf: turn.id
    case .add(_, let replaced, _): replaced.flatMap { $0.id == turn.id ? nil : $0.id }
    case .replace, .remove: nil
    }
  }

  /// The stored counter.
  ///
  /// The last sequence number is 0 if it isn't known.
  func storedCounter() async throws(StoreError) -> (last: UInt64, tag: StoreTag?) {
    do throws(StoreError) {
      let stored = try await store.load(keys.counter)
      return (stored?.value.last ?? 0, stored?.tag)
    } catch {
      // A corrupt counter has been quarantined, and the next commit quarantines one that can't be decoded.
      guard case .undecodable = error else { throw error }
      return (0, nil)
    }
  }

  /// The mutations that were withdrawn last.
  func storedWithdrawals() async throws(StoreError) -> MutationWithdrawals {
    try await readWithdrawals().value
  }

  private func readWithdrawals() async throws(StoreError) -> (value: MutationWithdrawals, tag: StoreTag?) {
    do throws(StoreError) {
      let stored = try await store.load(keys.withdrawals)
      return (stored?.value ?? MutationWithdrawals(), stored?.tag)
    } catch {
      // Corrupt bytes have been quarantined, and the next commit quarantines those that can't be decoded.
      guard case .undecodable = error else { throw error }
      return (MutationWithdrawals(), nil)
    }
  }

  /// Returns the counter for the next commit: the stored one, or a counter with the records' highest sequence number.
  private func readCounter() async throws(StoreError) -> (value: MutationCounter, tag: StoreTag?) {
    do throws(StoreError) {
      if let stored = try await store.load(keys.counter) { return (stored.value, stored.tag) }
    } catch {
      // The records give the least possible value of a counter that can't be decoded.
      guard case .undecodable = error else { throw error }
    }
    let records = try await store.observe(collection: keys.collection, as: Record.self).stored
    return (MutationCounter(last: records.map(\.stored.value.sequence).max() ?? 0), nil)
  }
}
