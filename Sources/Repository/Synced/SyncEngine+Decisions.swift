internal import DataStore

/// The operations of ``PendingMutations``.
extension SyncEngine {
  func list() async throws(StoreError) -> [PendingMutation<Key, Mutation>] {
    try await start()
    return queue.list
  }

  /// Cancels a mutation that hasn't been sent.
  func cancel(_ id: MutationID) async throws(PendingMutationError) {
    let entry = try await find(id)
    switch queue.standing(of: entry) {
    case .inFlight, .refused: throw .alreadySent(id)
    case .waiting, .needsSignIn, .conflicted: break
    }
    // The value being stored shows the mutation, after an attempt whose reply was lost.
    if isBeingConfirmed(entry) { throw .alreadySent(id) }
    // The mutation stays visible, and keeps its place in its lane, until its removal is certain.
    queue.hold(id)
    let isRemoved: Bool
    do throws(StoreError) {
      isRemoved = try await queue.removeUnsent(id, in: self)
    } catch {
      queue.release(id, in: self)
      throw .store(error)
    }
    guard isRemoved, !isBeingConfirmed(entry), queue.forget(id) else {
      queue.release(id, in: self)
      throw .alreadySent(id)
    }
    removeFromOverlay([id], of: entry.key)
    events.emit(.mutationCancelled(id))
    queue.end(id, .failure(.cancelled))
    queue.reportChanges(in: self)
    sender.pump(in: self)
  }

  private func isBeingConfirmed(_ entry: MutationQueue<Source>.Entry) -> Bool {
    cell(entry.key)?.state.isBeingConfirmed(entry.id) ?? false
  }

  /// Requeues a refused mutation.
  func requeue(_ id: MutationID) async throws(PendingMutationError) -> MutationID {
    let entry = try await find(id)
    guard case .refused = queue.standing(of: entry) else { throw .notRefused(id) }
    return try await requeue(entry)
  }

  func resolve(
    _ id: MutationID, _ resolution: Resolution<Mutation>
  ) async throws(PendingMutationError) -> MutationID? {
    let entry = try await find(id)
    guard case .conflicted = queue.standing(of: entry) else { throw .notConflicted(id) }
    switch resolution {
    case .retry: return try await requeue(entry)
    case .replace(let mutation): return try await replace(entry, by: mutation)
    case .discard:
      try await remove(entry)
      return nil
    }
  }

  /// Discards a mutation that was refused or is in conflict.
  func discard(_ id: MutationID) async throws(PendingMutationError) {
    let entry = try await find(id)
    switch queue.standing(of: entry) {
    case .refused, .conflicted: try await remove(entry)
    case .waiting, .inFlight, .needsSignIn: throw .notRefused(id)
    }
  }

  /// Sends a mutation again, after all others.
  ///
  /// A mutation that the server may have applied keeps its id, so that the server doesn't apply it twice.
  private func requeue(_ entry: MutationQueue<Source>.Entry) async throws(PendingMutationError) -> MutationID {
    try await replace(
      entry, by: entry.record.mutation, as: entry.record.isOutcomeUnknown ? entry.id : MutationID())
  }

  private func replace(
    _ entry: MutationQueue<Source>.Entry, by mutation: Mutation, as id: MutationID = MutationID()
  ) async throws(PendingMutationError) -> MutationID {
    queue.hold(entry.id)
    defer { queue.release(entry.id, in: self) }
    do throws(Failure) {
      _ = try await add(mutation, on: entry.key, as: id, replacing: entry, hasCaller: false)
      events.emit(.mutationRequeued(entry.id))
      return id
    } catch {
      switch error {
      case .conflict(let conflict): throw .conflict(conflict)
      case .store(let error): throw .store(error)
      case .server, .queueFull, .signedOut, .cancelled: throw .unknown(entry.id)
      }
    }
  }

  private func remove(_ entry: MutationQueue<Source>.Entry) async throws(PendingMutationError) {
    queue.hold(entry.id)
    defer { queue.release(entry.id, in: self) }
    let isRemoved: Bool
    do throws(StoreError) {
      isRemoved = try await queue.removeUndecided(entry.id, in: self)
    } catch {
      throw .store(error)
    }
    // Another process has already handled it.
    guard isRemoved else { throw .unknown(entry.id) }
    events.emit(.mutationDiscarded(entry.id))
    queue.reportChanges(in: self)
  }

  private func find(_ id: MutationID) async throws(PendingMutationError) -> MutationQueue<Source>.Entry {
    do throws(StoreError) {
      try await start()
    } catch {
      throw .store(error)
    }
    return try queue.undecided(id)
  }
}
