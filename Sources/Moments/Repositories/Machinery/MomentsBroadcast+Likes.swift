internal import DataStore
internal import Repository

// MARK: - Likes

extension MomentsBroadcast {
  /// Takes in what earlier processes left in the queue.
  ///
  /// - Returns: Why the queue could not be read, if it could not.
  func restore(_ queue: MutationQueue<MomentLike, Void, MomentsRepoError>) async -> StoreError? {
    do throws(StoreError) {
      await restore(try await queue.entries(), of: queue)
      return nil
    } catch {
      return error
    }
  }

  private func restore(
    _ entries: [MutationEntry<MomentLike>], of queue: MutationQueue<MomentLike, Void, MomentsRepoError>
  ) async {
    takenBack.formUnion(entries.filter(\.isDead).map(\.id))
    let earlier = entries.filter { !$0.isDead && timelines[$0.mutation.userID]?.contains($0.id) != true }
    for (userID, entries) in Dictionary(grouping: earlier, by: \.mutation.userID) {
      update(userID) { $0.restore(entries) }
    }
    for entry in earlier {
      if let ticket = await queue.ticket(for: entry.id) {
        follow(entry.mutation, ticket)
      } else {
        // Somebody has cancelled it meanwhile.
        refuse(entry.mutation, as: entry.id)
      }
    }
  }

  /// Sends likes until the calling task is cancelled.
  func send(_ queue: MutationQueue<MomentLike, Void, MomentsRepoError>) async {
    do throws(StoreError) {
      try await queue.run()
    } catch {
      // Only reading the store throws, and the queue has been read above.
      assertionFailure("The queue is loaded. \(error)")
    }
  }

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

  /// Whether a timeline that contains a like is stored, though it may not have come to the observers yet.
  func isSaved(_ like: MomentLike, as id: MutationID) -> Bool {
    timelines[like.userID]?.isSaved(id) ?? false
  }
}
