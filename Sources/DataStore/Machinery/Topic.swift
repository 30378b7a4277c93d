internal import Foundation
internal import Multicast

/// What a store knows of one name: the type of its values, what is stored for whom, and who watches.
///
/// Belongs to one ``BackedStore`` and is only touched in its isolation.
final class Topic<Value: Codable & Sendable>: AnyTopic {
  private typealias Relay = MulticastRelay<StoreChange<Value>>

  /// What the last look at a user's value found, or the last change made of it.
  private enum Knowledge {
    case nothing
    case value(revision: UInt64, Fingerprint)
    case unreadable(Fingerprint)
  }

  /// How the values are stored.
  let schema = StoreSchema.of(Value.self)

  /// Those who were looked at; nobody knows of the others, unless ``everyUserIsKnown``.
  private var knowledge: [String?: Knowledge] = [:]

  /// Whether all users were looked at once, so that there is nothing for those who are not in ``knowledge``.
  private var everyUserIsKnown = false

  /// One relay for each user whose changes were ever asked for; it replays what is stored.
  ///
  /// Relays stay as long as the store does, because streams do not keep them.
  private var relays: [String?: Relay] = [:]

  /// The relay of every user's changes, once they were asked for.
  private var everyUser: Relay?

  var typed: Topic<Value> { self }

  /// The users for whom something is stored, as far as is known, in no order.
  var userIDs: [String?] {
    knowledge.compactMap { userID, knowledge in if case .nothing = knowledge { nil } else { .some(userID) } }
  }

  /// For how many users anything is remembered.
  var knownUserCount: Int { knowledge.count }

  /// The users whose own changes are watched, in no order.
  var watchedUserIDs: [String?] { Array(relays.keys) }

  /// Whether somebody watches all users.
  var isEveryUserWatched: Bool { everyUser.map { $0.subscriberCount > 0 } ?? false }

  /// Whether somebody watches a user's value.
  func isWatched(_ userID: String?) -> Bool {
    relays[userID] != nil || isEveryUserWatched
  }

  /// Whether the last look, or the last change, left these bytes.
  func knows(_ fingerprint: Fingerprint, of userID: String?) -> Bool {
    switch knowledge[userID] {
    case .value(_, fingerprint), .unreadable(fingerprint): true
    default: false
    }
  }

  /// Whether a value with these bytes is known to be stored.
  func knowsValue(_ fingerprint: Fingerprint, of userID: String?) -> Bool {
    if case .value(_, fingerprint) = knowledge[userID] { true } else { false }
  }
}

extension Topic {
  /// Notes that a value was found, and sends it if it is somebody else's change.
  ///
  /// - Parameter revision: Of the store's newest change; counts this one.
  /// - Returns: The value with its revision: 0 for one that was there before the store was.
  func noteValue(
    _ value: Value, savedAt: Date, _ fingerprint: Fingerprint, of key: StoreKey<Value>, revision: inout UInt64
  ) -> StoredValue<Value> {
    let stored = { StoredValue(value: value, savedAt: savedAt, revision: $0) }
    switch knowledge[key.userID] {
    case .value(let known, fingerprint):
      return stored(known)
    case nil where !everyUserIsKnown:
      knowledge[key.userID] = .value(revision: 0, fingerprint)
      return stored(0)
    default:
      revision += 1
      publishSave(stored(revision), fingerprint, of: key)
      return stored(revision)
    }
  }

  /// Notes that nothing was found, and sends it if somebody else removed a value.
  ///
  /// - Parameter revision: Of the store's newest change; counts this one.
  func noteNothing(for key: StoreKey<Value>, revision: inout UInt64) {
    if case .value = knowledge[key.userID] {
      revision += 1
      publishRemoval(of: key, revision: revision)
    } else {
      forget(key.userID)
    }
  }

  /// Notes that what was found can neither be read nor be moved.
  ///
  /// - Returns: Whether that is news.
  func noteUnreadable(_ fingerprint: Fingerprint, for userID: String?) -> Bool {
    if case .unreadable(fingerprint) = knowledge[userID] { return false }
    knowledge[userID] = .unreadable(fingerprint)
    relays[userID]?.resetReplay()
    return true
  }

  /// Notes that nothing is stored for a user any more, though nobody removed it.
  func forget(_ userID: String?) {
    noteAbsence(of: userID)
    relays[userID]?.resetReplay()
  }

  private func noteAbsence(of userID: String?) {
    // Where every user is known, to be missing says the same, and names with ever new users do not add up.
    knowledge[userID] = everyUserIsKnown ? nil : Knowledge.nothing
  }

  /// Notes that nothing is stored for anybody any more, though nobody removed it.
  func forgetEverybody() {
    for userID in Set(knowledge.keys).union(relays.keys) { forget(userID) }
  }

  /// Notes that all users have been looked at.
  func noteEveryUser() {
    guard !everyUserIsKnown else { return }
    everyUserIsKnown = true
    knowledge = knowledge.filter { if case .nothing = $0.value { false } else { true } }
  }

  /// Notes a save, and sends it to all who watch.
  func publishSave(_ stored: StoredValue<Value>, _ fingerprint: Fingerprint, of key: StoreKey<Value>) {
    knowledge[key.userID] = .value(revision: stored.revision, fingerprint)
    relays[key.userID]?.send(.saved(key, stored))
    everyUser?.send(.saved(key, stored))
  }

  /// Notes a removal, and sends it to all who watch.
  func publishRemoval(of key: StoreKey<Value>, revision: UInt64) {
    noteAbsence(of: key.userID)
    if let relay = relays[key.userID] {
      relay.send(.removed(key, revision: revision))
      // A reader that comes between these two lines gets the removal that is just being made.
      relay.resetReplay()
    }
    everyUser?.send(.removed(key, revision: revision))
  }
}

extension Topic {
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
  associatedtype Value: Codable & Sendable

  /// The topic with its type.
  var typed: Topic<Value> { get }
}

extension AnyTopic {
  /// The type of the values, for messages.
  var valueTypeName: String { "\(Value.self)" }
}
