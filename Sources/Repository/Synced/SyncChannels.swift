internal import Multicast

/// The channels of a repository's observers.
///
/// Observers open and close channels on any thread. Elements are sent in the engine's isolation, except the first
/// element of a new channel if it is known.
final class SyncChannels<Source: RepositorySource>: Sendable {
  typealias Key = Source.Key
  typealias State = RepositoryState<Source.Value, RepositoryError<Source.Failure>>

  let values = KeyChannels<Key, Source.Value>()
  let states = KeyChannels<Key, State>()
  /// The pending mutations of each key, in the order in which they are applied.
  let pendings = KeyChannels<Key, [Source.Mutation]>()
  /// The values of all keys, in one channel that is named after the collection.
  let everyValue = KeyChannels<String, Source.Value>()
  /// The key whose value ``everyValue`` has sent last.
  let newestKey = NewestKey<Key>()
  /// All mutations, in one channel that is named after their collection.
  let lists = KeyChannels<String, [PendingMutation<Key, Source.Mutation>]>()

  /// The channels of the observers whose loading policy is `whileObserved`.
  let loading = LoadingChannels<Source>()

  private let paging: SourceCapabilities<Source>.Paging?

  init(_ capabilities: SourceCapabilities<Source>) {
    paging = capabilities.paging
  }

  /// Returns whether a key's value, state or pending mutations are observed.
  func isObserved(_ key: Key) -> Bool {
    values.isObserved(key) || states.isObserved(key) || pendings.isObserved(key) || loading.isObserved(key)
  }

  /// Returns whether the whole repository is observed, and the value of a key was sent last.
  func isShown(_ key: Key, toObserversOfAll name: String) -> Bool {
    newestKey.value == key && everyValue.isObserved(name)
  }

  /// Returns the number of iterators and subscriptions of a key.
  func observerCount(of key: Key) -> Int {
    values.observerCount(of: key) + states.observerCount(of: key) + pendings.observerCount(of: key)
      + loading.observerCount(of: key)
  }

  /// Sends the current elements to a new observer of a key.
  func sendFirst(_ keyState: KeyState<Source>) {
    if let visible = keyState.state.visible { values.sendFirst(visible, to: keyState.key) }
    states.sendFirst(keyState.currentState(paging), to: keyState.key)
    pendings.sendFirst(keyState.state.pendingMutations, to: keyState.key)
  }

  /// Sends the current elements to a new observer whose loading policy is `whileObserved`.
  func sendFirst(_ keyState: KeyState<Source>, to observed: LoadingChannels<Source>.Observed) {
    loading.sendFirst(keyState, keyState.currentState(paging), to: observed)
  }

  /// Sends the failure to open a key to the observers of the key's state whose loading policy is `never`.
  ///
  /// New observers of the pending mutations get an empty list.
  func sendFailure(_ failure: RepositoryError<Source.Failure>, to key: Key) {
    states.send(State(failure: failure), to: key)
    pendings.sendFirst([], to: key)
  }

  /// Sends another reason why a key can't be opened to all observers of the key's state.
  func sendChangedFailure(_ failure: RepositoryError<Source.Failure>, to key: Key) {
    sendFailure(failure, to: key)
    loading.send(State(failure: failure), of: key)
  }

  /// Sends the changes of a key to its observers, the value first.
  func send(_ keyState: inout KeyState<Source>, _ newestValue: NewestValue<Source>) {
    // If the value or the pending mutations have changed, the state counts as changed too.
    guard let state = keyState.takeState(paging) else { return }
    if keyState.sentVersion != keyState.state.visibleVersion {
      keyState.sentVersion = keyState.state.visibleVersion
      if let visible = keyState.state.visible {
        values.setCurrent(visible, of: keyState.key)
        loading.send(visible, of: keyState.key)
        newestValue.send(visible, &keyState)
      } else {
        // New observers don't receive the removed value.
        values.resetReplay(of: keyState.key)
        loading.resetReplay(of: keyState.key)
        newestValue.forget(keyState.key)
      }
    }
    if keyState.sentPendingVersion != keyState.state.pendingVersion {
      keyState.sentPendingVersion = keyState.state.pendingVersion
      // Collecting all pending mutations is linear in their number, so it is done only if they are observed.
      pendings.forgetCurrent(of: keyState.key)
      if pendings.isObserved(keyState.key) { pendings.setCurrent(keyState.state.pendingMutations, of: keyState.key) }
    }
    states.setCurrent(state, of: keyState.key)
    loading.send(state, of: keyState.key)
  }

  /// The keys that are observed individually, in the order of their store ids.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of observed keys.
  var observedKeys: [Key] {
    Set(values.keys + states.keys + pendings.keys + loading.keys).sorted { $0.storeID < $1.storeID }
  }

  /// Replaces the visible state of a key with ``RepositoryError/signedOut``, because its user has signed out.
  func close(_ key: Key) {
    let state = State(failure: .signedOut)
    values.resetReplay(of: key)
    loading.resetReplay(of: key)
    pendings.resetReplay(of: key)
    pendings.send([], to: key)
    // An existing channel replays the old state until the new one replaces it. A later channel begins with neither.
    states.forgetCurrent(of: key)
    states.send(state, to: key)
    loading.send(state, of: key)
  }

  /// Discards the elements with which new channels of a key begin.
  ///
  /// Opening the key again sets new ones. New channels in ``loading`` always begin empty.
  func forgetCurrent(of key: Key) {
    values.forgetCurrent(of: key)
    states.forgetCurrent(of: key)
    pendings.forgetCurrent(of: key)
  }

  /// Removes the channels of a key that were released because they have no observers.
  ///
  /// Those in ``loading`` are removed separately for each schedule, with ``LoadingChannels/forgetReleased(_:)``.
  func forgetReleased(_ key: Key) {
    values.forgetReleased(key)
    states.forgetReleased(key)
    pendings.forgetReleased(key)
  }

  /// Finishes all channels, because the repository is released.
  func finish() {
    values.finish()
    states.finish()
    pendings.finish()
    loading.finish()
    everyValue.finish()
    lists.finish()
  }
}
