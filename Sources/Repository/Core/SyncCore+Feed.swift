internal import DataStore
internal import Foundation

extension SyncCore {
  typealias Record = MutationRecord

  // MARK: - Beginnings

  /// Applies what is stored when the feed begins to follow a part.
  mutating func begin(_ part: StoreFeedPart, _ changes: [StoreFeedChange]) {
    switch part {
    case .key(let name) where name.collection == self.name:
      guard let id = keys[name]?.id, !(keys[id]?.isOpen ?? true) else { return }
      begin(id, changes.first ?? .removed(name, revision: 0))
    case .key: receiveShared(changes)
    case .collection(userCollection):
      for change in changes {
        guard let user = change.key.id.map(UserDigest.init(text:)) else { continue }
        signOutCountsAtStart[user] = change.stored(for: userKey(of: user))?.value.signOutCount
        receiveUser(change)
      }
    case .collection: restore(changes)
    }
  }

  /// Opens a key with the stored value that the feed has reported, unless this program can't use the value.
  private mutating func begin(_ id: ID, _ change: StoreFeedChange) {
    switch change {
    case .saved:
      if let storeKey = keys[id]?.storeKey, let stored = change.stored(for: storeKey) { open(id, stored) }
    case .removed: open(id, nil)
    case .unusable: break
    }
  }

  // MARK: - Commits

  /// Applies a commit that the feed has shown.
  ///
  /// - Parameters:
  ///   - transaction: The commit.
  ///   - isBeginning: Returns whether the feed has yet to begin to follow a key.
  ///   - own: Returns the mutations that a commit of this repository adds; `nil` for a commit of another one.
  /// - Returns: The commits of this repository that it contains.
  mutating func apply(
    _ transaction: StoreTransaction, isBeginning: (StoreKeyName) -> Bool, own: (StoreTag) -> Set<MutationID>?
  ) -> [StoreCommit] {
    defer { unusableValues = [] }
    let ownCommits = transaction.tags.filter { own($0) != nil }.map { StoreCommit(transaction, tag: $0) }
    for commit in ownCommits { applyWrite(commit) }
    for change in transaction.changes where change.key.collection == name {
      if case .unusable = change { unusableValues.insert(change.key) }
      receiveValue(change, isBeginning: isBeginning(change.key))
    }
    receiveRecords(transaction.changes) { change in
      let tag = if case .saved(_, let stored) = change { stored.tag } else { transaction.ownTag }
      guard let added = tag.flatMap(own) else { return .external }
      return change.key.id.map { added.contains(MutationID(rawValue: $0)) } ?? false ? .addition : .own
    }
    return ownCommits
  }

  /// Applies the changes of a commit that concern users.
  ///
  /// A sign-out precedes everything else, because nothing of the user may be shown after it.
  mutating func applyUsers(_ transaction: StoreTransaction) {
    for change in transaction.changes where change.key.collection == userCollection { receiveUser(change) }
  }

  private mutating func receiveValue(_ change: StoreFeedChange, isBeginning: Bool) {
    guard let state = keys[change.key] else { return }
    let id = state.id
    guard state.isOpen else {
      // An element of an earlier following of the key precedes what the key begins with.
      if !isBeginning { begin(id, change) }
      return
    }
    switch change {
    case .saved:
      guard let stored = change.stored(for: state.storeKey) else { return }
      keys[id]?.receive(.saved(state.storeKey, stored))
    case .removed(_, let revision): keys[id]?.receive(.removed(state.storeKey, revision: revision))
    // Observers keep the last value that this program could read.
    case .unusable: return
    }
    touch(id)
  }

  // MARK: - Records

  /// Who has made a change of a record.
  enum Origin {
    case external
    /// This repository, which knows what it has changed.
    case own
    /// This repository has added the mutation.
    case addition
  }

  private mutating func receiveShared(_ changes: [StoreFeedChange]) {
    for change in changes { shared.receive(change, recordKeys) }
  }

  /// Adds the mutations that are stored when the repository begins to follow them.
  private mutating func restore(_ changes: [StoreFeedChange]) {
    let found = records(in: changes)
    for (id, stored) in found {
      if let entry = readEntry(id, stored) { queue.restore(entry) }
    }
    shared.lastSequence = max(shared.lastSequence, found.last?.stored.value.sequence ?? 0)
    queue.recordReading(upTo: shared.lastSequence)
    for id in queue.endRestoring(at: now) { refuseInterrupted(id) }
  }

  /// The saved records, in the order of their mutations.
  private func records(in changes: [StoreFeedChange]) -> [(id: MutationID, stored: StoredValue<Record>)] {
    let saves = changes.compactMap { change -> (MutationID, StoredValue<Record>)? in
      guard change.key.collection == recordKeys.collection, let id = change.key.id else { return nil }
      return change.stored(for: recordKeys.record(MutationID(rawValue: id))).map { (MutationID(rawValue: id), $0) }
    }
    return saves.sorted { $0.1.value.sequence < $1.1.value.sequence }
  }

  /// Returns the mutation of a record; `nil` if the record is ignored, or the mutation is held.
  private mutating func readEntry(_ id: MutationID, _ stored: StoredValue<Record>) -> Entry? {
    let record = stored.value
    let valueKey = record.keys.count == 1 ? Key(storeID: record.keys[0]) : nil
    // The record of a user who has signed out is about to be erased.
    let user = valueKey.map { UserDigest($0.userID) } ?? record.user.map { UserDigest(text: $0) }
    if let user, !users.isOpen(user) { return nil }
    do throws(UnreadableReason) {
      let mutation = try format.decode(record)
      guard let valueKey else { throw .unknownKey(record.keys[0]) }
      let lane = record.lane.map { LaneID(userID: valueKey.userID, orderingKey: $0) }
      return Entry(
        id: id, key: valueKey, lane: lane ?? capabilities.lane(of: mutation, on: valueKey), mutation: mutation,
        record: record, tag: stored.tag, revision: stored.revision)
    } catch {
      hold(
        HeldMutation(
          id: id, key: valueKey, record: record, tag: stored.tag, revision: stored.revision, reason: error))
      return nil
    }
  }

  private mutating func receiveRecords(_ changes: [StoreFeedChange], origin: (StoreFeedChange) -> Origin) {
    receiveShared(changes)
    // Another process has stored the mutations up to its counter's number in this commit or in earlier ones. A counter
    // of this repository follows mutations of others that may not be reported yet.
    for change in changes {
      if let counter = change.stored(for: recordKeys.counter), origin(change) == .external {
        queue.recordReading(upTo: counter.value.last)
      }
    }
    var origins: [MutationID: Origin] = [:]
    for change in changes where change.key.collection == recordKeys.collection {
      if let id = change.key.id { origins[MutationID(rawValue: id)] = origin(change) }
    }
    for (id, stored) in records(in: changes) {
      shared.lastSequence = max(shared.lastSequence, stored.value.sequence)
      let origin = origins[id] ?? .external
      if origin != .external, let known = queue[id] {
        receiveOwn(known, stored, isAddition: origin == .addition)
      } else {
        receiveExternal(id, stored)
      }
    }
    for change in changes where change.key.collection == recordKeys.collection {
      guard let id = change.key.id.map(MutationID.init(rawValue:)) else { continue }
      switch change {
      case .saved: break
      case .removed(_, let revision): receiveRemoval(of: id, revision, isOwn: origins[id] != .external)
      case .unusable:
        if let tag = queue[id]?.tag ?? queue.heldMutation(id)?.tag { start(.checkRecord(id, tag)) }
      }
    }
  }

  /// Applies a record that this repository has written.
  private mutating func receiveOwn(_ entry: Entry, _ stored: StoredValue<Record>, isAddition: Bool) {
    let (id, sequence) = (entry.id, stored.value.sequence)
    guard isAddition else {
      // An earlier record of a mutation that is being added again under its id is about to be replaced.
      guard entry.tag != nil else { return queue.recordReplaced(by: id, tag: stored.tag) }
      return queue.recordWrite(stored.value, of: id, tag: stored.tag, revision: stored.revision)
    }
    changesDuringAddition[id] = nil
    let isBehindGap = queue.recordAddition(of: id, sequence: sequence, tag: stored.tag, revision: stored.revision)
    if isBehindGap { start(.readPredecessors(id, sequence: sequence)) }
  }

  /// Applies a record that another repository or process has written.
  private mutating func receiveExternal(_ id: MutationID, _ stored: StoredValue<Record>) {
    if let known = queue[id] {
      guard known.tag != nil else {
        changesDuringAddition[id] = .saved(recordKeys.record(id).keyName, stored)
        return queue.recordReplaced(by: id, tag: stored.value.isLive ? nil : stored.tag)
      }
      // A record with the known tag is the one that is known, whenever it is reported.
      guard stored.revision > known.revision, stored.tag != known.tag else { return }
      let isReadable = stored.value.problem == nil && stored.value.hasSameMutation(as: known.record)
      if isReadable, known.isLive || !stored.value.isLive { return update(known, with: stored) }
      // It was refused or in conflict, and another repository sends it again. Or another version of the program has
      // changed it.
      queue.remove(id)
      removeFromOverlay([id], of: known.key)
    } else if let held = queue.heldMutation(id), stored.revision <= held.revision {
      return
    }
    guard let entry = readEntry(id, stored) else { return }
    endHolding(id)
    switch queue.addExternal(entry, at: now) {
    case .nothing: break
    case .refused: refuseInterrupted(id)
    case .behindGap: start(.readPredecessors(id, sequence: entry.record.sequence))
    }
    guard let added = queue[id], added.isLive, let keyID = keys[added.key]?.id, keys[keyID]?.isOpen ?? false else {
      return
    }
    let isSentHere = queue.sends(added)
    keys[keyID]?.restore(added, isSentHere: isSentHere)
    touch(keyID)
  }

  private mutating func update(_ entry: Entry, with stored: StoredValue<Record>) {
    guard let verdict = queue.receive(stored, of: entry, at: now) else {
      // The record may show that the leader, the repository that sends the mutations, makes the lane wait, for example
      // because an attempt failed. The calls of the lane's mutations then end with the result `queued`.
      if !queue.sends, queue.isStalled(entry.lane) { endQueued { $0.waiting(in: entry.lane) } }
      return
    }
    removeFromOverlay([entry.id], of: entry.key)
    switch verdict {
    case .conflicted: end(entry.id, .success(.conflicted(entry.id)))
    // Only the repository that sent the mutation has the server's error; see ``MutationResult/queued``.
    case .refused: end(entry.id, .success(.queued))
    }
  }

  private mutating func receiveRemoval(of id: MutationID, _ revision: UInt64, isOwn: Bool) {
    if queue.heldMutation(id) != nil { endHolding(id) }
    guard let entry = queue[id] else { return }
    guard entry.tag != nil else {
      changesDuringAddition[id] = .removed(recordKeys.record(id).keyName, revision: revision)
      return queue.recordReplaced(by: id, tag: nil)
    }
    guard revision > entry.revision || isOwn else { return }
    let isIncluded = keys[entry.key].map { unusableValues.contains($0.storeKey.keyName) } ?? false
    if isIncluded, !shared.withdrawals.contains(id) { keys[entry.key]?.state.absorb(id) }
    remove(entry)
    // The call that removes the record ends that of the mutation.
    if !isOwn, !idsBeingRemoved.contains(id) { endCallOfRemoved(id) }
  }

  private mutating func remove(_ entry: Entry) {
    removeFromOverlay([entry.id], of: entry.key)
    queue.remove(entry.id)
  }

  /// Ends the call of a mutation whose record another repository or process has removed, because the mutation was
  /// confirmed or withdrawn.
  mutating func endCallOfRemoved(_ id: MutationID) {
    end(id, shared.withdrawals.contains(id) ? .failure(.cancelled) : .success(.confirmed))
  }

  /// Applies what another process has stored while a mutation was being added again, which has failed.
  mutating func applyChangeDuringAddition(of id: MutationID) {
    switch changesDuringAddition.removeValue(forKey: id) {
    case .saved(_, let stored)?: if let stored = stored as? StoredValue<Record> { receiveExternal(id, stored) }
    case .removed(_, let revision)?: receiveRemoval(of: id, revision, isOwn: false)
    case .unusable, nil: break
    }
  }

  /// Ends a mutation whose record this program can't use and that is no longer stored.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - tag: The tag that the record had.
  ///   - error: The reason, if the record was quarantined.
  mutating func endMissing(_ id: MutationID, _ tag: StoreTag, _ error: StoreError?) {
    if queue.heldMutation(id)?.tag == tag { endHolding(id) }
    guard let entry = queue[id], entry.tag == tag else { return }
    remove(entry)
    if let error { end(id, .failure(.store(error))) }
    endCallOfRemoved(id)
  }

  /// Returns the next commit of records.
  func makeCommit(of writes: [RecordWrite]) -> RecordCommit<Key, Mutation> {
    RecordCommit(writes, of: queue, shared, recordKeys, requirement: requirement)
  }

  /// Applies a commit of records, because the repository is released, so that its feed doesn't show it.
  mutating func apply(_ commit: RecordCommit<Key, Mutation>, _ made: StoreCommit) {
    var shared = shared
    commit.apply(made, to: &queue, &shared)
    self.shared = shared
  }

  // MARK: - Users

  /// Whether the repository may hold data of a user.
  ///
  /// The id `nil` stands for data that belongs to no user. The repository may always hold such data.
  func isOpen(_ userID: String?) -> Bool { userID.map { users.isOpen(UserDigest($0)) } ?? true }

  /// Whether new calls may begin for a user, or for data that belongs to no user.
  func mayBegin(_ userID: String?) -> Bool { userID.map { users.mayBegin(UserDigest($0)) } ?? true }

  /// The number of a user's sign-outs that are known to have begun; 0 for data that belongs to no user.
  func signOutCount(of userID: String?) -> UInt64 { userID.map { users.record(of: UserDigest($0)).signOutCount } ?? 0 }

  /// The precondition of a commit with data of a user, or `nil` if the data belongs to no user.
  func requirement(of userID: String?) -> UserRequirement? {
    userID.map { UserRequirement(key: userKey(of: UserDigest($0)), tag: users.tag(of: UserDigest($0))) }
  }

  func userKey(of user: UserDigest) -> StoreKey<UserRecord> { StoreKey(userCollection, id: user.text) }

  private mutating func receiveUser(_ change: StoreFeedChange) {
    guard let user = change.key.id.map(UserDigest.init(text:)) else { return }
    switch change {
    case .saved: if let stored = change.stored(for: userKey(of: user)) { receive(stored, of: user) }
    case .removed(_, let revision): users.recordRemoval(of: user, revision: revision)
    // The last known record stays in force.
    case .unusable: users.recordAbsence(of: user, tag: users.tag(of: user))
    }
  }

  mutating func receive(_ stored: StoredValue<UserRecord>, of user: UserDigest) {
    let effects = users.receive(stored.value, of: user, tag: stored.tag, revision: stored.revision)
    if effects.isClosed { close(user) }
    if effects.isReopened { start(.reopen(user)) }
    if effects.hasSignedIn { takeSignIn(of: user) }
    if stored.value.phase == .signingOut { start(.finishSignOut(user)) }
  }

  /// Resumes the mutations of a user whose stored record shows a new sign-in.
  private mutating func takeSignIn(of user: UserDigest) {
    // Includes the users of mutations in flight, because their requests may be using the old credentials.
    let userIDs = queue.usersNeedingSignIn.union(queue.liveCountsByKey.keys.map(\.userID))
    for userID in userIDs where UserDigest(userID) == user { resumeMutations(of: userID) }
  }

  /// Discards the state of a user who has signed out, and ends the calls of the user.
  private mutating func close(_ user: UserDigest) {
    let closed = keys.remove { $0.userID.map { UserDigest($0) == user } ?? false }
    for var state in closed {
      endFollowing(state)
      for fetch in state.state.discardReplies() { effects.ends.append(.fetch(fetch, .failure(.signedOut))) }
    }
    effects.closed.append((user, closed.map(\.key)))
    for entry in queue.all where UserDigest(entry.key.userID) == user {
      queue.remove(entry.id)
      end(entry.id, .failure(.signedOut))
    }
    for held in queue.heldMutations where held.user == user { queue.removeHeld(held.id) }
    effects.reports.append(.forgetEvents)
  }
}

extension StoreTransaction {
  /// The tags of the commits that it shows.
  fileprivate var tags: [StoreTag] {
    if let ownTag { return [ownTag] }
    var tags: [StoreTag] = []
    for case .saved(_, let stored) in changes where !tags.contains(stored.tag) { tags.append(stored.tag) }
    return tags
  }
}

extension StoreCommit {
  /// The commit that an element of a feed shows.
  fileprivate init(_ transaction: StoreTransaction, tag: StoreTag) {
    var (savedAt, byteCounts) = (Date?.none, [StoreKeyName: Int]())
    for case .saved(let key, let stored) in transaction.changes where stored.tag == tag {
      (savedAt, byteCounts[key]) = (stored.savedAt, stored.byteCount)
    }
    self.init(
      revision: transaction.revision, tag: tag, savedAt: savedAt ?? .distantPast, byteCounts: byteCounts)
  }
}
