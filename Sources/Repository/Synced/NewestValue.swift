internal import DataStore
internal import Foundation
internal import Multicast

/// Sends the values of all keys to the observers of the whole repository.
///
/// A new observer first receives the newest value that the repository has read, then every later value of any key. If
/// that value isn't known, the observer first receives all stored values instead, the newest one last. It isn't known
/// before the first read, and after its removal or eviction.
///
/// Belongs to one ``SyncEngine`` and is only used in its isolation.
final class NewestValue<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Value = Source.Value
  typealias Cell = SyncCell<Source>

  /// The place of a value in the order in which values were saved: by revision, and by time for values that were saved
  /// before this store object was created.
  private struct SavePlace: Comparable {
    let revision: UInt64
    let savedAt: Date

    static func < (earlier: SavePlace, later: SavePlace) -> Bool {
      (earlier.revision, earlier.savedAt) < (later.revision, later.savedAt)
    }
  }

  private let name: String
  private let store: any KeyValueStore
  private let channels: KeyChannels<String, Value>
  /// The key whose value was sent last, which other repositories of this process read too.
  private let newestKey: NewestKey<Source.Key>
  /// The greatest place of the values that ``send(_:_:)`` has sent since a value was last forgotten; `nil` if none.
  private var newestPlace: SavePlace?
  private var isObservingStore = false
  private var endWatching: (@Sendable () -> Void)?

  /// - Parameters:
  ///   - name: The collection of the values, which is also the key of their channel.
  ///   - store: The store that keeps the values.
  ///   - channels: The channels of the observers.
  init(_ name: String, store: any KeyValueStore, channels: SyncChannels<Source>) {
    (self.name, self.store) = (name, store)
    (self.channels, newestKey) = (channels.everyValue, channels.newestKey)
  }

  /// Whether the whole repository is observed.
  var isObserved: Bool { channels.isObserved(name) }

  /// Sends the visible value of a key.
  ///
  /// The value with which a key was opened isn't sent if it was sent before, or if a newer value of any key is known.
  func send(_ visible: Value, _ cell: Cell) {
    let place = SavePlace(revision: cell.state.base?.revision ?? 0, savedAt: cell.fetchedAt ?? .distantPast)
    // `sentVersion` is already that of the value to send.
    if cell.sentVersion == cell.openVersion {
      // If the key was opened again, its value may already have been sent to the current channel.
      if let number = cell.everyValueChannelNumber, number == channels.number(of: name) { return }
      // A value that was stored before the key was opened isn't sent if a newer one is known.
      if let newestPlace, place < newestPlace { return }
    }
    newestPlace = max(newestPlace ?? place, place)
    newestKey.value = cell.key
    cell.everyValueChannelNumber = channels.setCurrent(visible, of: name)
  }

  /// Returns whether the whole repository is observed, and the value of a key was sent last.
  func isShown(_ key: Source.Key) -> Bool { newestKey.value == key && isObserved }

  /// Stops replaying the removed value of a key, if it was sent last.
  func forget(_ removed: Source.Key) {
    forget { $0 == removed }
  }

  /// Stops replaying the value that was sent last, if its key is selected.
  func forget(where isSelected: (Source.Key) -> Bool) {
    guard let key = newestKey.value, isSelected(key) else { return }
    channels.resetReplay(of: name)
    newestPlace = nil
  }

  /// Opens every stored key unless the newest value is known, and later each key whose stored value changes.
  ///
  /// - Throws: A `StoreError` if the stored keys can't be listed. The call can then be repeated.
  func observe(in engine: isolated Engine) async throws(StoreError) {
    guard !isObservingStore else { return }
    isObservingStore = true
    do throws(StoreError) {
      try await engine.start()
      let observation = try await store.observe(collection: name, as: Value.self)
      // An observer that has the newest value doesn't need older ones.
      if !channels.hasReplay(of: name) {
        for entry in observation.stored { await engine.openForEveryValue(entry.key) }
      }
      let changes = observation.changes
      endWatching = engine.tasks.start { [weak engine] in
        for await commit in changes {
          for change in commit { await engine?.openForEveryValue(change.key) }
        }
      }
    } catch {
      isObservingStore = false
      throw error
    }
  }

  /// Opens the stored keys of a user who has signed in, because changes that were reported before the sign-in were
  /// ignored.
  func openStored(of user: UserDigest, in engine: isolated Engine) {
    guard isObservingStore else { return }
    engine.start { [store, name] engine in
      await engine.keepTrying { (engine) async throws(StoreError) in
        guard engine.newestValue.isObserved else { return }
        let stored = try await store.observe(collection: name, as: Value.self).stored
        for entry in stored where user.owns(entry.key, as: Source.Key.self) {
          await engine.openForEveryValue(entry.key)
        }
      }
    }
  }

  /// Opens a stored key, and sends its value unless that has been sent.
  ///
  /// The value is sent even if a newer value of another key is known, because it is one of the stored values that a new
  /// observer receives, or because it may have changed.
  func open(_ key: Source.Key, in engine: isolated Engine) async throws(StoreError) {
    guard let cell = try await engine.openUnlessSignedOut(key) else { return }
    if let visible = cell.state.visible, cell.everyValueChannelNumber != channels.number(of: name) {
      cell.everyValueChannelNumber = channels.setCurrent(visible, of: name)
      newestKey.value = key
    }
    engine.release(cell)
  }

  /// Releases the resources of the observers if none is left.
  func endObserving() {
    guard channels.forgetReleased(name) else { return }
    endWatching?()
    endWatching = nil
    isObservingStore = false
  }
}

/// The key whose value was sent last to the observers of a whole repository.
final class NewestKey<Key: RepositoryKey>: Sendable {
  private let key = Lock<Key?>(nil)

  var value: Key? {
    get { key.withLock { $0 } }
    set { key.withLock { $0 = newValue } }
  }
}
