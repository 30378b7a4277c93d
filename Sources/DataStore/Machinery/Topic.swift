internal import Multicast

/// What a store knows of one name: the type of its values, whose values it has seen, and who watches them.
///
/// Belongs to one ``BackedStore`` and is only touched in its isolation.
final class Topic<Value: Codable & Sendable>: AnyTopic {
  private typealias Relay = MulticastRelay<StoreChange<Value>>

  /// The revisions of the values that are stored for sure; other users' have yet to be looked at.
  private var revisions: [String?: UInt64] = [:]

  /// One relay for each user whose changes were ever asked for; it replays what is stored.
  ///
  /// Relays stay as long as the store does, because streams do not keep them.
  private var relays: [String?: Relay] = [:]

  /// The relay of every user's changes, once they were asked for.
  private var everyUser: Relay?

  var valueType: Any.Type { Value.self }

  /// The revision of what is stored for a user; nil when nothing is or nobody has looked.
  func revision(of userID: String?) -> UInt64? {
    revisions[userID]
  }

  /// Notes that a value was found, and returns its revision: 0 for one that was there before the store was.
  func noteStored(for userID: String?) -> UInt64 {
    let revision = revisions[userID] ?? 0
    revisions[userID] = revision
    return revision
  }

  /// Notes that nothing is stored for a user any more, though nobody removed it.
  func forget(_ userID: String?) {
    revisions[userID] = nil
    relays[userID]?.resetReplay()
  }

  /// Notes a change, and sends it to all who watch.
  func publish(_ change: StoreChange<Value>) {
    let userID = change.key.userID
    revisions[userID] = change.stored?.revision
    if let relay = relays[userID] {
      relay.send(change)
      // A reader that comes between these two lines gets the removal that is just being made.
      if change.stored == nil { relay.resetReplay() }
    }
    everyUser?.send(change)
  }

  /// The changes of one user's value; nil when they were never asked for.
  func changes(of userID: String?) -> MulticastStream<StoreChange<Value>, Never>? {
    relays[userID]?.stream
  }

  /// Begins to keep the changes of one user's value.
  func beginChanges(
    of key: StoreKey<Value>, stored: StoredValue<Value>?
  ) -> MulticastStream<StoreChange<Value>, Never> {
    let relay = Relay(replay: 1, buffering: .unbounded)
    if let stored { relay.send(.saved(key, stored)) }
    relays[key.userID] = relay
    return relay.stream
  }

  /// Registers for every user's changes.
  func subscribeToEveryUser() -> MulticastSubscription<StoreChange<Value>, Never> {
    let relay = everyUser ?? Relay(buffering: .unbounded)
    everyUser = relay
    return relay.stream.subscribe()
  }
}

/// A ``Topic`` of any type of values.
protocol AnyTopic: AnyObject {
  /// The type of the values.
  var valueType: Any.Type { get }
}
