// MARK: - Coming and going

extension MutationQueueState {
  /// Gives a new mutation its place, before it is written; nil when its id is taken.
  ///
  /// The place is given at the call, not when the write is done: so those that were enqueued later do not overtake it.
  mutating func reserve(_ entry: Entry) -> UInt64? {
    guard sequences[entry.id] == nil else { return nil }
    lastSequence += 1
    sequences[entry.id] = lastSequence
    beingStored[lastSequence] = entry
    append(lastSequence, to: entry.orderingKey)
    return lastSequence
  }

  /// A new mutation is durable.
  mutating func finishReserving(_ sequence: UInt64) {
    guard let entry = beingStored.removeValue(forKey: sequence) else { return }
    list.insert(entry, number: sequence)
    waitingCount += 1
    makeReady(entry.orderingKey)
  }

  /// What was to have this place could not be written.
  mutating func abandon(_ sequence: UInt64) {
    guard let entry = beingStored.removeValue(forKey: sequence) else { return }
    // A dead letter that could not be requeued keeps its old place.
    if sequences[entry.id] == sequence { sequences[entry.id] = nil }
    removeFromLane(sequence, entry)
  }

  /// Keeps a mutation that waits from being sent while it is removed from the store.
  mutating func lockForCancelling(_ id: MutationID) throws(MutationQueueError) -> Entry {
    let (sequence, entry) = try find(id)
    switch entry.state {
    case .sending: throw .alreadySending(id)
    case .dead: throw .isDead(id)
    case .waiting where answered.contains(sequence): throw .alreadySending(id)
    case .waiting: break
    }
    locked.insert(sequence)
    return entry
  }

  /// Keeps a dead letter from being changed twice.
  mutating func lockDeadLetter(_ id: MutationID) throws(MutationQueueError) -> Entry {
    let (sequence, entry) = try find(id)
    guard entry.isDead else { throw .isNotDead(id) }
    locked.insert(sequence)
    return entry
  }

  /// The change did not come about.
  mutating func unlock(_ id: MutationID) {
    guard let sequence = sequences[id], locked.remove(sequence) != nil, let entry = list[sequence] else { return }
    makeReady(entry.orderingKey)
  }

  /// A locked mutation is gone from the store.
  mutating func removeLocked(_ id: MutationID) {
    guard let sequence = sequences.removeValue(forKey: id), locked.remove(sequence) != nil,
      let entry = list.remove(sequence)
    else { return }
    if entry.isDead {
      deadCount -= 1
    } else {
      waitingCount -= 1
      removeFromLane(sequence, entry)
    }
  }

  /// Gives a dead letter a place behind all others, before it is written there; it is locked until then.
  ///
  /// As with a new mutation: those that were enqueued later do not overtake it.
  mutating func reserveAgain(_ id: MutationID) throws(MutationQueueError) -> (sequence: UInt64, entry: Entry) {
    let dead = try lockDeadLetter(id)
    let entry = Entry(
      id: id, orderingKey: dead.orderingKey, mutation: dead.mutation, enqueuedAt: dead.enqueuedAt)
    lastSequence += 1
    beingStored[lastSequence] = entry
    append(lastSequence, to: entry.orderingKey)
    return (lastSequence, entry)
  }

  /// A dead letter is in the store, at its new place, as one to be sent.
  mutating func finishReservingAgain(_ id: MutationID, as sequence: UInt64) {
    guard let old = sequences[id], locked.remove(old) != nil, list.remove(old) != nil else { return }
    deadCount -= 1
    sequences[id] = sequence
    finishReserving(sequence)
  }

  /// A dead letter could not be written at its new place: it stays at its old one.
  mutating func abandonAgain(_ id: MutationID, _ sequence: UInt64) {
    unlock(id)
    abandon(sequence)
  }

  private func find(_ id: MutationID) throws(MutationQueueError) -> (sequence: UInt64, entry: Entry) {
    guard let sequence = sequences[id] else { throw .unknown(id) }
    guard let entry = list[sequence], !locked.contains(sequence) else { throw .busy(id) }
    return (sequence, entry)
  }
}
