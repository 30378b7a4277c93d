internal import Multicast

/// Whom ``MutationQueue`` tells what.
extension MutationQueue {
  /// Tells readers of the state, and ``run()``, that it is another.
  func stateHasChanged() {
    let old = snapshot.value
    let new = state.snapshot
    snapshot.send(new)
    if (old.waitingCount, old.deadCount) != (new.waitingCount, new.deadCount) {
      events.emit(.queueLength(waiting: new.waitingCount, dead: new.deadCount))
    }
    changes.update { $0 += 1 }
  }

  /// The ticket of a mutation, the same for all who ask.
  func makeTicket(_ id: MutationID) -> Ticket {
    if let channel = progress[id] { return Ticket(id: id, progress: channel.stream) }
    // Who asks misses nothing that is told, however short the waits are.
    let channel = ProgressChannel(state.giveTicket(id) ? .fate(.queued) : .underWay, buffering: .unbounded)
    progress[id] = channel
    return Ticket(id: id, progress: channel.stream)
  }

  /// Tells callers that their mutations have to wait.
  func tellQueued(_ ids: [MutationID]) {
    for id in ids { progress[id]?.send(.fate(.queued)) }
  }

  /// Tells callers what has become of a mutation for good.
  func settle(_ id: MutationID, as fate: MutationFate<Reply, Failure>) {
    let channel = progress.removeValue(forKey: id)
    channel?.send(.fate(fate))
    channel?.finish()
  }
}
