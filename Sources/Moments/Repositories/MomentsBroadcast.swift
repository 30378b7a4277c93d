internal import DataStore
internal import Multicast
internal import Synchronization

/// Brings the changes of a data store to the observers of a ``MomentsRepo``, in the store's order.
///
/// Apart from the repository, so that the task that follows the store does not keep the repository alive.
final class MomentsBroadcast: Sendable {
  private enum Progress {
    case opening
    /// Every change up to this one has been sent.
    case reached(revision: UInt64)
    /// The store could not be observed. Nobody follows it now.
    case failed(StoreError)
  }

  private let everyUser = MulticastRelay<MomentsDetails>(replay: 1, buffering: .unbounded)
  private let users = Mutex<[String: MulticastRelay<MomentsDetails>]>([:])
  private let progress = CurrentValueRelay(Progress.opening)

  var momentsDetails: MulticastStream<MomentsDetails, Never> { everyUser.stream }

  func momentsDetails(userID: String) -> MulticastStream<MomentsDetails, Never> {
    relay(userID: userID).stream
  }

  var hasFailed: Bool {
    if case .failed = progress.value { true } else { false }
  }

  /// Whether the change with this revision has been sent to the observers, as soon as that is known; false when the
  /// calling task is cancelled first.
  ///
  /// - Throws: What kept the store from being observed.
  func reaches(_ revision: UInt64) async throws(StoreError) -> Bool {
    for await progress in progress.stream {
      switch progress {
      case .opening: continue
      case .reached(let reached): if reached >= revision { return true }
      case .failed(let error): throw error
      }
    }
    return false
  }

  /// Starts to send what `store` holds, then every change of it, until the task is cancelled or the store ends.
  func startFollowing(_ store: any PersistentDataStoreType) -> Task<Void, Never> {
    progress.send(.opening)
    return Task { await follow(store) }
  }

  private func follow(_ store: any PersistentDataStoreType) async {
    let observation: StoreObservation<MomentsDetails>
    do {
      observation = try await store.observeMomentsDetails()
    } catch {
      progress.send(.failed(error))
      return
    }
    for entry in observation.stored { send(.saved(entry.key, entry.stored)) }
    advance(to: 0)
    for await change in observation.changes { send(change) }
  }

  private func send(_ change: StoreChange<MomentsDetails>) {
    let user = change.key.userID.map { relay(userID: $0) }
    switch change {
    case .saved(_, let stored):
      user?.send(stored.value)
      everyUser.send(stored.value)
    case .removed:
      // Nobody who comes later may see what was removed.
      if everyUser.latest == user?.latest { everyUser.resetReplay() }
      user?.resetReplay()
    }
    advance(to: change.revision)
  }

  private func advance(to revision: UInt64) {
    progress.update { current in
      if case .reached(let reached) = current, reached >= revision { return }
      current = .reached(revision: revision)
    }
  }

  private func relay(userID: String) -> MulticastRelay<MomentsDetails> {
    users.withLock { users in
      if let relay = users[userID] { return relay }
      let relay = MulticastRelay<MomentsDetails>(replay: 1, buffering: .unbounded)
      users[userID] = relay
      return relay
    }
  }
}
