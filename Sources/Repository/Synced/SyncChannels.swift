internal import Multicast

/// The channels of a repository's observers.
///
/// Observers open and close them on any thread. What they get is sent in the engine's isolation.
final class SyncChannels<Source: RepositorySource>: Sendable {
  typealias Key = Source.Key
  typealias Cell = SyncCell<Source>

  let values = KeyChannels<Key, Source.Value>()
  let states = KeyChannels<Key, Cell.State>()
  /// The pending mutations of each key, in the order in which they are applied.
  let pendings = KeyChannels<Key, [Source.Mutation]>()
  /// The values of all keys, under the name of the collection.
  let everyValue = KeyChannels<String, Source.Value>()
  /// All mutations, under the name of their collection.
  let lists = KeyChannels<String, [PendingMutation<Key, Source.Mutation>]>()

  /// The channels of the observers because of whom values are fetched.
  let loading = LoadingChannels<Source>()

  private let paging: SourceCapabilities<Source>.Paging?

  init(_ capabilities: SourceCapabilities<Source>) {
    paging = capabilities.paging
  }

  /// Whether a key's value, state or pending mutations are observed.
  func areObserved(_ key: Key) -> Bool {
    values.isObserved(key) || states.isObserved(key) || pendings.isObserved(key) || loading.areObserved(key)
  }

  /// How many sequences of a key are being read.
  func observerCount(of key: Key) -> Int {
    values.observerCount(of: key) + states.observerCount(of: key) + pendings.observerCount(of: key)
      + loading.observerCount(of: key)
  }

  /// Gives a new observer of a key what there is.
  func sendFirst(_ cell: Cell) {
    if let visible = cell.state.visible { values.sendFirst(visible, to: cell.key) }
    states.sendFirst(cell.currentState(paging), to: cell.key)
    pendings.sendFirst(cell.state.pendingMutations, to: cell.key)
  }

  /// Gives a new observer what there is, because of whom the value is fetched.
  func sendFirst(_ cell: Cell, to observed: LoadingChannels<Source>.Observed) {
    loading.sendFirst(cell, cell.currentState(paging), to: observed)
  }

  /// Gives the observers of a key that can't be opened the reason.
  func sendFailure(_ failure: Cell.Failure, to key: Key) {
    states.send(Cell.State(failure: failure), to: key)
    pendings.sendFirst([], to: key)
  }

  /// Sends what is new of a key to its observers, the value first.
  func send(_ cell: Cell, _ newestValue: NewestValue<Source>) {
    guard let state = cell.takeState(paging) else { return }
    if cell.sentVersion != cell.state.visibleVersion {
      cell.sentVersion = cell.state.visibleVersion
      if let visible = cell.state.visible {
        values.setCurrent(visible, of: cell.key)
        loading.send(visible, of: cell.key)
        newestValue.send(visible, cell)
      } else {
        // Observers that come from now on don't see what was removed.
        values.resetReplay(of: cell.key)
        loading.resetReplay(of: cell.key)
        newestValue.forget(cell.key)
      }
    }
    if cell.sentPendingVersion != cell.state.pendingVersion {
      cell.sentPendingVersion = cell.state.pendingVersion
      // Made of all pending mutations, so only where it is observed.
      pendings.forgetCurrent(of: cell.key)
      if pendings.isObserved(cell.key) { pendings.setCurrent(cell.state.pendingMutations, of: cell.key) }
    }
    states.setCurrent(state, of: cell.key)
    loading.send(state, of: cell.key)
  }

  /// The keys that are observed one by one, in the order of their names.
  ///
  /// - Complexity: O(*n* log *n*).
  var observedKeys: [Key] {
    Set(values.keys + states.keys + pendings.keys + loading.keys).sorted { $0.storeID < $1.storeID }
  }

  /// Shows nothing of a key any more, because its user has signed out.
  func close(_ key: Key) {
    let state = Cell.State(failure: .signedOut)
    values.resetReplay(of: key)
    loading.resetReplay(of: key)
    pendings.resetReplay(of: key)
    pendings.send([], to: key)
    states.forgetCurrent(of: key)
    states.send(state, to: key)
    loading.send(state, of: key)
  }

  /// Forgets what later observers of a key get first, until it is opened again.
  func forgetCurrent(of key: Key) {
    values.forgetCurrent(of: key)
    states.forgetCurrent(of: key)
    pendings.forgetCurrent(of: key)
  }

  /// Releases the channels of a key whose observers are gone.
  func forgetReleased(_ key: Key) {
    values.forgetReleased(key)
    states.forgetReleased(key)
    pendings.forgetReleased(key)
  }

  /// Ends all: the repository is released.
  func finish() {
    values.finish()
    states.finish()
    pendings.finish()
    loading.finish()
    everyValue.finish()
    lists.finish()
  }
}
