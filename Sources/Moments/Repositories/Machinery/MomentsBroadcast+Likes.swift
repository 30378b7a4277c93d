internal import Repository

// MARK: - Likes

extension MomentsBroadcast {
  /// Shows a like at once, and has it enqueued behind those that were shown before it.
  func add<Value: Sendable>(
    _ like: MomentLike, as id: MutationID, enqueue: @escaping @Sendable () async -> Value
  ) -> Task<Value, Never> {
    update(like.userID) { $0.make(like, as: id) }
    return enqueuing.add(enqueue)
  }

  func refuse(_ like: MomentLike, as id: MutationID) {
    takenBack.insert(id)
    update(like.userID) { $0.refuse(id) }
  }

  /// Takes a like back once the queue has ended it otherwise than by its delivery: cancelled it, or used up its
  /// attempts.
  func follow(_ like: MomentLike, _ ticket: MutationTicket<Void, MomentsRepoError>) {
    Task { [weak self] in
      do throws(CancellationError) {
        if case .delivered = try await ticket.settled() { return }
        await self?.refuse(like, as: ticket.id)
      } catch {
        // The repository was released, and the like stays in the store.
      }
    }
  }

  func beginSending(
    _ like: MomentLike, as id: MutationID
  ) async -> (ticket: VersionGuard.Ticket, isFirstAttempt: Bool) {
    if takenBack.remove(id) != nil {
      update(like.userID) { $0.add(like, as: id) }
      if let ticket = await queue?.ticket(for: id) { follow(like, ticket) }
    }
    return update(like.userID) { $0.beginSending(id) }
  }

  func confirm(_ like: MomentLike, as id: MutationID) {
    update(like.userID) { $0.confirm(id) }
  }

  func needsFetch(_ like: MomentLike, as id: MutationID) -> Bool {
    timelines[like.userID]?.needsFetch(id) ?? false
  }
}
