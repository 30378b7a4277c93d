internal import DataStore
internal import Multicast

/// A repository of this process, as the other repositories of its name on the same place see it when they evict values.
///
/// A value that another repository observes isn't evicted, because its observers would lose it although they need it.
/// Other processes can't be asked.
final class EvictionPeer: Sendable {
  private struct Registration {
    weak var peer: EvictionPeer?
  }

  /// The living peers, by the name of their repository.
  private static let registrations = Lock<[String: [ObjectIdentifier: Registration]]>([:])

  private let name: String
  private let place: StorePlace?
  private let isObserved: @Sendable (_ storeID: String) -> Bool

  /// Registers a repository until this object is released.
  ///
  /// - Parameters:
  ///   - name: The name of the repository.
  ///   - store: The store of the repository.
  ///   - isObserved: Returns whether the repository has observers for a key with a store id. It is called on any
  ///     thread.
  init(_ name: String, on store: any KeyValueStore, isObserved: @escaping @Sendable (_ storeID: String) -> Bool) {
    (self.name, self.isObserved) = (name, isObserved)
    place = StorePlace.of(store)
    let id = ObjectIdentifier(self)
    Self.registrations.withLock { $0[name, default: [:]][id] = Registration(peer: self) }
  }

  deinit {
    let id = ObjectIdentifier(self)
    Self.registrations.withLock { registrations in
      registrations[name]?[id] = nil
      if registrations[name]?.isEmpty ?? false { registrations[name] = nil }
    }
  }

  /// The other living peers of the same name on the same place.
  ///
  /// - Complexity: O(*n*), where *n* is the number of repositories of the name in this process.
  var others: [EvictionPeer] {
    guard let place else { return [] }
    let peers = Self.registrations.withLock { $0[name]?.values.compactMap(\.peer) ?? [] }
    return peers.filter { $0 !== self && $0.place?.isSame(as: place) ?? false }
  }

  /// Returns whether a repository of some peers observes a key with a store id.
  static func isObserved(_ storeID: String, byAnyOf peers: [EvictionPeer]) -> Bool {
    peers.contains { $0.isObserved(storeID) }
  }
}
