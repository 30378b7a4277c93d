internal import Foundation

extension BackedStore {
  /// Takes a save, to be written behind the calls that wait already: those of them that save are written with it.
  func enqueue<Value>(_ save: PendingSave<Value>) {
    if pendingSaves.isEmpty {
      executor.enqueue { self.assumeIsolated { $0.writePendingSaves() } }
    }
    pendingSaves.append(save)
  }

  /// What came of a save, once it is written.
  func outcome<Value>(of save: PendingSave<Value>) async -> Result<StoredValue<Value>, StoreError> {
    await withCheckedContinuation { continuation in
      if let outcome = save.outcome {
        continuation.resume(returning: outcome)
      } else {
        save.continuation = continuation
      }
    }
  }

  /// Writes what was saved, the last value of each key, then sends every value in the order they came.
  ///
  /// Every other call does so first, and so finds what was saved before it came.
  func writePendingSaves() {
    let saves = pendingSaves
    pendingSaves = []
    var last: [String: Int] = [:]
    for (index, save) in saves.enumerated() { last[save.name] = index }
    let writes = write(saves.enumerated().compactMap { index, save in last[save.name] == index ? save : nil })
    for save in saves { finish(save, writes[save.name]!) }
  }

  /// Writes saves, each of another key, and says by name what came of them.
  ///
  /// What was written before the whole store is found damaged is gone with it, so all are written again. Where others
  /// keep the whole store locked, one save waits for them and no other does: all that follow it fail as it did.
  private func write(_ saves: [any AnyPendingSave]) -> [String: Result<Fingerprint, StoreError>] {
    do throws(StoreError) {
      return try againIfDamaged { () throws(StoreError) in
        var writes: [String: Result<Fingerprint, StoreError>] = [:]
        var lockedOut: StoreError?
        for save in saves {
          if let lockedOut {
            writes[save.name] = .failure(lockedOut)
            continue
          }
          let outcome = try write(save)
          writes[save.name] = outcome
          if case .failure(.writeFailed(let error)) = outcome, error.isLockedOut { lockedOut = .writeFailed(error) }
        }
        return writes
      }
    } catch {
      return Dictionary(uniqueKeysWithValues: saves.map { ($0.name, .failure(error)) })
    }
  }

  /// - Throws: ``StoreError/damaged(movedTo:reason:)`` only.
  private func write(_ save: some AnyPendingSave) throws(StoreError) -> Result<Fingerprint, StoreError> {
    let save = save.typed
    do throws(StoreError) {
      try makeRoom(for: save.key, named: save.name, in: save.topic)
      try backend.write(save.bytes, to: save.name)
      return .success(Fingerprint(save.bytes))
    } catch {
      if case .damaged = error { throw error }
      return .failure(error)
    }
  }

  private func finish(_ save: some AnyPendingSave, _ write: Result<Fingerprint, StoreError>) {
    let save = save.typed
    let outcome = write.map { fingerprint in
      revision += 1
      let stored = StoredValue(value: save.value, savedAt: save.savedAt, revision: revision)
      save.topic.publishSave(stored, fingerprint, of: save.key)
      return stored
    }
    save.outcome = outcome
    save.continuation?.resume(returning: outcome)
  }
}

/// A save that waits to be written.
///
/// Belongs to one ``BackedStore`` and is only touched in its isolation.
final class PendingSave<Value: Codable & Sendable>: AnyPendingSave {
  let key: StoreKey<Value>
  let name: String
  let topic: Topic<Value>
  let value: Value
  let savedAt: Date
  let bytes: Data

  /// What came of it; nil while it waits.
  var outcome: Result<StoredValue<Value>, StoreError>?

  /// Who waits for it; nil when it is written before its caller comes to wait.
  var continuation: CheckedContinuation<Result<StoredValue<Value>, StoreError>, Never>?

  var typed: PendingSave<Value> { self }

  init(key: StoreKey<Value>, name: String, topic: Topic<Value>, value: Value, savedAt: Date, bytes: Data) {
    self.key = key
    self.name = name
    self.topic = topic
    self.value = value
    self.savedAt = savedAt
    self.bytes = bytes
  }
}

/// A ``PendingSave`` of any type of value.
protocol AnyPendingSave: AnyObject {
  associatedtype Value: Codable & Sendable

  /// The encoded name of the key.
  var name: String { get }

  /// The save with its type.
  var typed: PendingSave<Value> { get }
}
