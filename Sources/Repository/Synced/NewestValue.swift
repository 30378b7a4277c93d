internal import DataStore
internal import Foundation
internal import Multicast

/// The observers of a repository's values of all keys: the newest first for a new observer, then every one of any key.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class NewestValue<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Value = Source.Value
  typealias Cell = SyncCell<Source>

  /// The order in which values were saved; before the first one of this store object, by their times.
  private struct SaveOrder: Comparable {
    let revision: UInt64
    let savedAt: Date

    static func < (earlier: SaveOrder, later: SaveOrder) -> Bool {
      (earlier.revision, earlier.savedAt) < (later.revision, later.savedAt)
    }
  }

  private let name: String
  private let store: any KeyValueStore
  private let events: RepositoryEvents
  private let channels: KeyChannels<String, Value>
  /// The key whose value was sent last.
  private var key: Source.Key?
  private var order: SaveOrder?
  private var isObserving = false
  private var endWatching: (@Sendable () -> Void)?

  /// - Parameters:
  ///   - name: The collection of the values, under which they are observed.
  ///   - store: Where the values are kept.
  ///   - events: Where to report failures.
  ///   - channels: The observers.
  init(_ name: String, store: any KeyValueStore, events: RepositoryEvents, channels: KeyChannels<String, Value>) {
    (self.name, self.store, self.events, self.channels) = (name, store, events, channels)
  }

  /// Sends what is new of a key.
  func send(_ visible: Value, _ cell: Cell) {
    let order = SaveOrder(revision: cell.state.base?.revision ?? 0, savedAt: cell.fetchedAt ?? .distantPast)
    if cell.sentVersion == cell.openVersion {
      // A key that was opened again shows what was sent before.
      if let number = cell.newestValueNumber, number == channels.number(of: name) { return }
      // What was stored before is not new where something newer is known.
      if let newest = self.order, order < newest { return }
    }
    self.order = max(self.order ?? order, order)
    key = cell.key
    cell.newestValueNumber = channels.setCurrent(visible, of: name)
  }

  /// Whether observers have the value of a key.
  func isShown(_ key: Source.Key) -> Bool { self.key == key && channels.isObserved(name) }

  /// Forgets the value of a key, which was removed.
  func forget(_ removed: Source.Key) {
    guard key == removed else { return }
    channels.resetReplay(of: name)
    order = nil
  }

  /// Opens every key that is stored, and each one that is stored later.
  func observe(in engine: isolated Engine) async {
    guard !isObserving else { return }
    isObserving = true
    do throws(StoreError) {
      try await engine.start()
      let observation = try await store.observe(collection: name, as: Value.self)
      // An observer that has the newest value needs no older ones.
      if !channels.hasReplay(of: name) {
        for entry in observation.stored { await open(entry.key, in: engine) }
      }
      let changes = observation.changes
      endWatching = engine.tasks.start { [weak engine] in
        for await commit in changes {
          for change in commit { await engine?.openForEvery(change.key) }
        }
      }
    } catch {
      // The next observer tries again.
      isObserving = false
      events.emit(.storeFailed(error))
    }
  }

  /// Opens a key that was stored.
  func open(_ storeKey: StoreKey<Value>, in engine: isolated Engine) async {
    guard let id = storeKey.id, let key = Source.Key(storeID: id) else { return }
    do throws(RepositoryError<Source.Failure>) {
      let cell = try await engine.open(key)
      if let visible = cell.state.visible, cell.newestValueNumber != channels.number(of: name) {
        cell.newestValueNumber = channels.setCurrent(visible, of: name)
        self.key = key
      }
      engine.release(cell)
    } catch {
      engine.reportFailureToOpen(error)
    }
  }

  /// Releases what was held for observers that are gone.
  func endObserving() {
    guard channels.forgetReleased(name) else { return }
    endWatching?()
    endWatching = nil
    isObserving = false
  }
}
