// MARK: - Changing

extension MutationQueueState {
  /// Keeps a mutation that waits from being sent while it is removed from the store.
  mutating func lockForCancelling(_ id: MutationID) throws(MutationQueueError) -> Entry {
    let (sequence, entry) = try find(id)
    switch entry.state {
    case .sending: throw .alreadySending(id)
    case .dead: throw .isDead(id)
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

  /// Draws the number under which a dead letter is enqueued again, behind all others.
  mutating func drawSequence() -> UInt64 {
    lastSequence += 1
    return lastSequence
  }

  /// A locked dead letter is in the store as one to be sent.
  mutating func requeue(_ id: MutationID, as sequence: UInt64) {
    guard let old = sequences[id], locked.remove(old) != nil, let dead = list.remove(old) else { return }
    let entry = Entry(
      id: id, orderingKey: dead.orderingKey, mutation: dead.mutation, enqueuedAt: dead.enqueuedAt)
    deadCount -= 1
    sequences[id] = sequence
    beingStored[sequence] = entry
    append(sequence, to: entry.orderingKey)
    finishReserving(sequence)
  }

  private func find(_ id: MutationID) throws(MutationQueueError) -> (sequence: UInt64, entry: Entry) {
    guard let sequence = sequences[id] else { throw .unknown(id) }
    guard let entry = list[sequence], !locked.contains(sequence) else { throw .busy(id) }
    return (sequence, entry)
  }
}
