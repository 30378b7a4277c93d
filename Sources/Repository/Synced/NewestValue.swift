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
  typealias Value = Source.Value

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
  private let channels: KeyChannels<String, Value>
  /// The key whose value was sent last, which other repositories of this process read too.
  private let newestKey: NewestKey<Source.Key>
  /// The greatest place of the values that ``send(_:_:)`` has sent since a value was last forgotten; `nil` if none.
  private var newestPlace: SavePlace?
  /// Whether each key is opened whose stored value changes.
  var isObservingStore = false
  var endWatching: (@Sendable () -> Void)?

  /// - Parameters:
  ///   - name: The collection of the values, which is also the key of their channel.
  ///   - channels: The channels of the observers.
  init(_ name: String, channels: SyncChannels<Source>) {
    self.name = name
    (self.channels, newestKey) = (channels.everyValue, channels.newestKey)
  }

  /// Whether the whole repository is observed.
  var isObserved: Bool { channels.isObserved(name) }

  /// Sends the visible value of a key.
  ///
  /// The value with which a key was opened isn't sent if it was sent before, or if a newer value of any key is known.
  func send(_ visible: Value, _ state: inout KeyState<Source>) {
    let place = SavePlace(revision: state.state.base?.revision ?? 0, savedAt: state.fetchedAt ?? .distantPast)
    // `sentVersion` is already that of the value to send.
    if state.sentVersion == state.openVersion {
      // If the key was opened again, its value may already have been sent to the current channel.
      if let number = state.everyValueChannelNumber, number == channels.number(of: name) { return }
      // A value that was stored before the key was opened isn't sent if a newer one is known.
      if let newestPlace, place < newestPlace { return }
    }
    newestPlace = max(newestPlace ?? place, place)
    newestKey.value = state.key
    state.everyValueChannelNumber = channels.setCurrent(visible, of: name)
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

  /// Whether a new observer receives a value at once.
  var isKnown: Bool { channels.hasReplay(of: name) }

  /// Sends the value of a stored key that was opened, unless that has been sent.
  ///
  /// The value is sent even if a newer value of another key is known, because it is one of the stored values that a new
  /// observer receives, or because it may have changed.
  func sendStored(_ state: inout KeyState<Source>) {
    guard let visible = state.state.visible, state.everyValueChannelNumber != channels.number(of: name) else { return }
    state.everyValueChannelNumber = channels.setCurrent(visible, of: name)
    newestKey.value = state.key
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
