internal import DataStore

/// A write of the record of a mutation.
struct RecordWrite: Sendable {
  enum Change: Sendable {
    /// Adds the record of a new mutation with the next sequence number.
    ///
    /// `replacing` names the refused or conflicted mutation that is sent again or replaced. The same commit removes its
    /// record, or overwrites it if both have the same id.
    case add(replacing: MutationID?)
    /// Stores the present record, unless another repository has written the record since that was necessary.
    case save
    /// Stores the present record, unless this repository no longer owns its mark; see ``MutationRecord/isMarked``.
    case mark
    case remove(RemovalCondition)
  }

  /// The condition under which a record is removed.
  enum RemovalCondition: Sendable {
    /// No other process may be sending the mutation.
    case unsent
    /// The mutation awaits a decision of the app, because it is refused or in conflict.
    case undecided
    /// The mutation is held, and its record still has a tag.
    case held(StoreTag)
    /// The server has refused the mutation, and its caller learns that.
    case refused

    /// Whether the removal *withdraws* the mutation; see ``MutationWithdrawals``.
    var withdraws: Bool { if case .refused = self { false } else { true } }
  }

  let id: MutationID
  let change: Change
}

/// The next commit of records: which of the waiting writes it contains, and with which preconditions.
///
/// A value that decides. It is made from the present state of the queue, which includes everything that the store has
/// reported, so a write that another process has overtaken doesn't apply anymore. If a precondition fails, the caller
/// applies what is stored and makes the commit again.
///
/// A commit that adds mutations also saves the counter; see ``MutationCounter``. A commit that withdraws mutations also
/// saves ``MutationWithdrawals``.
struct RecordCommit<Key: RepositoryKey, Mutation: Codable & Sendable> {
  typealias Queue = MutationQueue<Key, Mutation>

  /// What becomes of a write.
  enum Fate {
    /// The commit contains it.
    case included
    /// It no longer applies: another process has removed or changed the record, or the user has signed out.
    case void
    /// An earlier commit has made it, although its call has failed.
    case made
    /// It replaces a record that the commit removes. It is made afterwards, in case the removal fails.
    case postponed
  }

  private(set) var batch = StoreBatch()
  /// The fates of the writes, in their order.
  private(set) var fates: [Fate] = []
  /// The mutations whose first records the commit contains.
  private(set) var added: Set<MutationID> = []
  private var saved: [MutationID: MutationRecord] = [:]
  private var requirements: [StoreKeyName: Requirement] = [:]
  private let keys: MutationKeys
  private var shared: SharedRecords

  private struct Requirement {
    let tag: StoreTag?
    /// The indices of the writes that need it.
    var writes: Set<Int>
  }

  /// - Parameters:
  ///   - writes: The writes that wait.
  ///   - queue: The mutations.
  ///   - shared: The stored values that the mutations share.
  ///   - keys: The store keys of the records.
  ///   - requirement: Returns the precondition of a commit with data of a user.
  init(
    _ writes: [RecordWrite], of queue: Queue, _ shared: SharedRecords, _ keys: MutationKeys,
    requirement: (_ userID: String?) -> UserRequirement?
  ) {
    (self.shared, self.keys) = (shared, keys)
    let removed = Set(writes.compactMap { Self.removedID(of: $0) })
    var (additions, withdrawals): (Set<Int>, Set<Int>) = ([], [])
    for (index, write) in writes.enumerated() {
      let fate = include(write, index, of: queue, isRemoved: removed.contains(write.id), requirement)
      fates.append(fate)
      guard case .included = fate else { continue }
      if case .add = write.change { additions.insert(index) }
      guard let id = Self.withdrawnID(of: write) else { continue }
      withdrawals.insert(index)
      self.shared.withdrawals.add([id])
    }
    if !additions.isEmpty {
      batch.save(MutationCounter(last: self.shared.lastSequence), for: keys.counter)
      batch.requireFound(shared.counterTag, of: keys.counter)
      requirements[keys.counter.keyName] = Requirement(tag: shared.counterTag, writes: additions)
    }
    if !withdrawals.isEmpty {
      batch.save(self.shared.withdrawals, for: keys.withdrawals)
      batch.requireFound(shared.withdrawalsTag, of: keys.withdrawals)
      requirements[keys.withdrawals.keyName] = Requirement(tag: shared.withdrawalsTag, writes: withdrawals)
    }
  }

  private mutating func include(
    _ write: RecordWrite, _ index: Int, of queue: Queue, isRemoved: Bool, _ requirement: (String?) -> UserRequirement?
  ) -> Fate {
    switch write.change {
    case .add(let replaced):
      guard let entry = queue[write.id] else { return .void }
      guard entry.tag == nil else { return .made }
      if let replaced {
        guard let tag = queue.replaceableTag(of: replaced, by: entry) else { return .void }
        require(tag, of: replaced, for: index)
        if replaced != write.id { batch.remove(keys.record(replaced)) }
      }
      if let requirement = requirement(entry.key.userID) {
        requirement.add(to: &batch)
        let name = requirement.key.keyName
        requirements[name, default: Requirement(tag: requirement.tag, writes: [])].writes.insert(index)
      }
      shared.lastSequence += 1
      added.insert(write.id)
      save(entry.record.with(sequence: shared.lastSequence), of: write.id)
    case .save, .mark:
      guard let entry = queue[write.id], let tag = entry.tag else { return .void }
      if case .mark = write.change, !entry.ownsMark { return .void }
      if case .save = write.change, !entry.needsSave { return .made }
      if isRemoved { return .postponed }
      require(tag, of: write.id, for: index)
      save(entry.record, of: write.id)
    case .remove(let condition):
      guard let tag = queue.removableTag(of: write.id, if: condition) else {
        return condition.withdraws && shared.withdrawals.contains(write.id) ? .made : .void
      }
      batch.remove(keys.record(write.id))
      // A verdict of the server stands, whatever others have stored.
      if condition.withdraws { require(tag, of: write.id, for: index) }
    }
    return .included
  }

  private mutating func save(_ record: MutationRecord, of id: MutationID) {
    batch.save(record, for: keys.record(id))
    saved[id] = record
  }

  private mutating func require(_ tag: StoreTag, of id: MutationID, for index: Int) {
    let key = keys.record(id)
    if requirements[key.keyName] == nil { batch.require(tag, of: key) }
    requirements[key.keyName, default: Requirement(tag: tag, writes: [])].writes.insert(index)
  }

  private static func removedID(of write: RecordWrite) -> MutationID? {
    switch write.change {
    case .remove: write.id
    case .add(let replaced): replaced == write.id ? nil : replaced
    case .save, .mark: nil
    }
  }

  private static func withdrawnID(of write: RecordWrite) -> MutationID? {
    if case .remove(let condition) = write.change, !condition.withdraws { return nil }
    return removedID(of: write)
  }

  /// The writes that need a precondition which still fails, although the commit was made again after everything that is
  /// stored was applied.
  ///
  /// - Parameters:
  ///   - key: The key whose precondition has failed.
  ///   - earlier: The commit that has failed.
  func writes(stuckOn key: StoreKeyName, since earlier: Self) -> Set<Int> {
    guard let requirement = requirements[key], requirement.tag == earlier.requirements[key]?.tag else { return [] }
    return requirement.writes
  }

  /// Applies the commit to the queue, because the repository is released, so that its feed doesn't show it.
  func apply(_ commit: StoreCommit, to queue: inout Queue, _ shared: inout SharedRecords) {
    for (id, record) in saved {
      if added.contains(id) {
        _ = queue.recordAddition(of: id, sequence: record.sequence, tag: commit.tag, revision: commit.revision)
      } else {
        queue.recordWrite(record, of: id, tag: commit.tag, revision: commit.revision)
      }
    }
    if !added.isEmpty { (shared.lastSequence, shared.counterTag) = (self.shared.lastSequence, commit.tag) }
    if requirements[keys.withdrawals.keyName] != nil {
      (shared.withdrawals, shared.withdrawalsTag) = (self.shared.withdrawals, commit.tag)
    }
  }
}

/// The stored values that the mutations share, as the store has reported them.
struct SharedRecords: Sendable {
  /// The greatest known sequence number.
  var lastSequence: UInt64 = 0
  /// The tag of the stored counter; `nil` if there is none that this program can use.
  var counterTag: StoreTag?
  var withdrawals = MutationWithdrawals()
  /// The tag of the stored withdrawals; `nil` if there are none that this program can use.
  var withdrawalsTag: StoreTag?

  /// Applies a change that the store reports, unless it is that of another key.
  mutating func receive(_ change: StoreFeedChange, _ keys: MutationKeys) {
    switch change.key {
    case keys.counter.keyName:
      let stored = change.stored(for: keys.counter)
      (lastSequence, counterTag) = (max(lastSequence, stored?.value.last ?? 0), stored?.tag)
    case keys.withdrawals.keyName:
      let stored = change.stored(for: keys.withdrawals)
      (withdrawals, withdrawalsTag) = (stored?.value ?? withdrawals, stored?.tag)
    default: break
    }
  }
}
