internal import DataStore
internal import Foundation
internal import Multicast

/// What ``MutationQueue/run()`` does.
extension MutationQueue {
  /// Waits until the state is another than it was, or the time has come, or the calling task is cancelled.
  func waitForChange(after change: UInt64, until deadline: Duration?) async {
    await withTaskGroup { group in
      group.addTask { [changes] in
        for await current in changes.stream where current != change { return }
      }
      if let deadline {
        // Ends early only by cancellation, when the change was there first.
        group.addTask { [timer] in do { try await timer.sleep(deadline) } catch {} }
      }
      await group.next()
      group.cancelAll()
    }
  }

  func attempt(_ entry: MutationEntry<Mutation>) async {
    let id = entry.id
    progress[id]?.send(.underWay)
    events.emit(.mutationSending(id, attempt: entry.attempts))
    switch await send(entry.mutation, id.rawValue) {
    case .delivered(let reply):
      await finish(id, as: .delivered(reply)) { [store, key = key(of: id)] () throws(StoreError) in
        try await store.remove(key)
      } then: { queue in
        queue.state.finishSending(id)
        queue.events.emit(.mutationDelivered(id))
      }
    case .refused(let failure):
      await bury(entry, failure)
    case .retryLater(let failure):
      if Task.isCancelled {
        tellQueued(state.release(id))
        stateHasChanged()
      } else if retryPolicy.allows(attempt: entry.attempts + 1) {
        backOff(entry, failure)
      } else {
        await bury(entry, failure)
      }
    }
  }

  private func backOff(_ entry: MutationEntry<Mutation>, _ failure: Failure) {
    let reason = String(describing: failure)
    let delay = retryPolicy.delay(forAttempt: state.failures(with: entry.id), using: &random)
    let nextTry = now().addingTimeInterval(delay / .seconds(1))
    let told = state.backOff(entry.id, until: timer.elapsed() + delay, nextTry: nextTry, reason: reason)
    events.emit(.retryScheduled(entry.id, attempt: entry.attempts, delay: delay, reason: reason))
    tellQueued(told)
    stateHasChanged()
  }

  /// Makes a dead letter of a mutation.
  private func bury(_ entry: MutationEntry<Mutation>, _ failure: Failure) async {
    guard let sequence = state.sequence(entry.id) else { return }
    let letter = StoredMutation<Mutation>.DeadLetter(reason: String(describing: failure), since: now())
    let dead = StoredMutation(entry, sequence: sequence, deadLetter: letter)
    await finish(entry.id, as: .refused(failure)) { [store, key = key(of: entry.id)] () throws(StoreError) in
      try await store.save(dead, for: key)
    } then: { queue in
      queue.state.refuse(entry.id, reason: letter.reason, since: letter.since)
      queue.events.emit(.mutationRefused(entry.id, reason: letter.reason))
    }
  }

  /// Writes down the end of a mutation, however often it takes, and only then lets the next one of its key go.
  ///
  /// Callers are told when it is written, or at the first failure: what the server said does not change by it. At a
  /// failure also those who wait behind it are told that they have to.
  private func finish(
    _ id: MutationID, as fate: MutationFate<Reply, Failure>,
    write: @Sendable () async throws(StoreError) -> Void, then change: (isolated MutationQueue) -> Void
  ) async {
    var failures = 0
    while true {
      do throws(StoreError) {
        try await write()
        break
      } catch {
        failures += 1
        progress[id]?.send(.fate(fate))
        tellQueued(state.holdUp(id))
        events.emit(.storeFailed(reason: error.description))
      }
      let delay = retryPolicy.delay(forAttempt: failures, using: &random)
      do {
        try await timer.sleep(timer.elapsed() + delay)
      } catch {
        // The queue is being stopped. The next run sends the mutation again under its key, and gets the same answer.
        tellQueued(state.release(id))
        stateHasChanged()
        return
      }
    }
    change(self)
    settle(id, as: fate)
    stateHasChanged()
  }

  /// Tells what the store could not read of this queue, once.
  func report(_ event: StoreEvent) {
    guard reportedUnreadable.insert(event).inserted else { return }
    switch event {
    case .valueQuarantined(let key, let movedTo, let reason) where key.collection == name:
      events.emit(.mutationUnreadable(MutationID(rawValue: key.id ?? ""), movedTo: movedTo, reason: reason))
    case .valueUnreadable(let key, let error) where key.collection == name:
      events.emit(.storeFailed(reason: "mutation \(key.id ?? ""): \(error)"))
    case .newerValueLeftUntouched(let key, _, _) where key.collection == name:
      events.emit(.mutationOfNewerProgram(MutationID(rawValue: key.id ?? "")))
    case .migrationFailed(let key, _, let reason) where key.collection == name:
      events.emit(.mutationNotMigrated(MutationID(rawValue: key.id ?? ""), reason: reason))
    default: reportedUnreadable.remove(event)
    }
  }
}
