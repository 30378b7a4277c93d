internal import Foundation

extension BackedStore {
  /// Takes a save, to be written behind the calls that wait already: those of them that save are written with it.
  func enqueue<Value>(_ save: PendingSave<Value>) {
    if pendingSaves.isEmpty {
      executor.enqueue { self.assumeIsolated { $0.writePendingSaves() } }
    }
    pendingSaves.append(save)
  }

  /// Writes what was saved, the last value of each key, then sends every value in the order they came.
  ///
  /// Every other call does so first, and so finds what was saved before it came.
  func writePendingSaves() {
    let saves = pendingSaves
    pendingSaves = []
    var last: [String: Int] = [:]
    for (index, save) in saves.enumerated() { last[save.name] = index }
    var outcomes: [String: Result<Fingerprint, StoreError>] = [:]
    for (index, save) in saves.enumerated() where last[save.name] == index { outcomes[save.name] = write(save) }
    for save in saves { finish(save, outcomes[save.name]!) }
  }

  private func write(_ save: some AnyPendingSave) -> Result<Fingerprint, StoreError> {
    let save = save.typed
    do throws(StoreError) {
      try makeRoom(for: save.key, named: save.name, in: save.topic)
      try backend.write(save.bytes, to: save.name)
      return .success(Fingerprint(save.bytes))
    } catch {
      return .failure(error)
    }
  }

  private func finish(_ save: some AnyPendingSave, _ outcome: Result<Fingerprint, StoreError>) {
    let save = save.typed
    save.continuation.resume(
      returning: outcome.map { fingerprint in
        revision += 1
        let stored = StoredValue(value: save.value, savedAt: save.savedAt, revision: revision)
        save.topic.publishSave(stored, fingerprint, of: save.key)
        return stored
      })
  }
}

/// A save that waits to be written.
struct PendingSave<Value: Codable & Sendable>: AnyPendingSave {
  let key: StoreKey<Value>
  let name: String
  let topic: Topic<Value>
  let value: Value
  let savedAt: Date
  let bytes: Data
  let continuation: CheckedContinuation<Result<StoredValue<Value>, StoreError>, Never>

  var typed: PendingSave<Value> { self }
}

/// A ``PendingSave`` of any type of value.
protocol AnyPendingSave {
  associatedtype Value: Codable & Sendable

  /// The encoded name of the key.
  var name: String { get }

  /// The save with its type.
  var typed: PendingSave<Value> { get }
}
