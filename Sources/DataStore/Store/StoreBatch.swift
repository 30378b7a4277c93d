/// Several saves and removals that a store makes as one, with preconditions.
///
/// ```swift
/// var batch = StoreBatch()
/// batch.save(reply, for: .inbox(of: "0"))
/// batch.remove(queued)
/// try await store.commit(batch)
/// ```
///
/// A later call for the same key replaces an earlier one. Preconditions of a key add up.
public struct StoreBatch: Sendable {
  /// What is done to each key, in the order in which the keys were named first.
  package private(set) var entries: [any AnyStoreBatchEntry] = []
  private var indices: [StoreKeyName: Int] = [:]

  /// Creates a batch that changes nothing.
  public init() {}

  /// The keys that the batch changes or requires something of, in the order in which they were named first.
  public var keys: [StoreKeyName] { entries.map(\.keyName) }

  /// Adds a save.
  public mutating func save<Value>(_ value: Value, for key: StoreKey<Value>) {
    edit(key) { $0.change = .save(value) }
  }

  /// Adds a removal.
  ///
  /// Where nothing is stored, the removal changes nothing.
  public mutating func remove<Value>(_ key: StoreKey<Value>) {
    edit(key) { $0.change = .remove }
  }

  /// Adds a precondition: the key holds what a certain commit wrote.
  ///
  /// Where it doesn't, the commit throws ``StoreError/preconditionFailed(_:)`` and changes nothing. The comparison is made
  /// under the same lock or in the same transaction as the changes.
  ///
  /// - Parameters:
  ///   - tag: The tag of the stored value; `nil` if nothing may be stored.
  ///   - key: The key.
  public mutating func require<Value>(_ tag: StoreTag?, of key: StoreKey<Value>) {
    edit(key) { $0.requirements.append(tag) }
  }

  private mutating func edit<Value>(_ key: StoreKey<Value>, _ body: (inout StoreBatchEntry<Value>) -> Void) {
    // A key of another type is an entry of its own, which the commit refuses.
    if let index = indices[key.keyName], var entry = entries[index] as? StoreBatchEntry<Value> {
      body(&entry)
      entries[index] = entry
    } else {
      var entry = StoreBatchEntry(key: key)
      body(&entry)
      indices[key.keyName] = entries.count
      entries.append(entry)
    }
  }
}

/// What a batch does to one key.
package struct StoreBatchEntry<Value: Codable & Sendable>: AnyStoreBatchEntry {
  package let key: StoreKey<Value>
  /// `nil` for a key of which something is only required.
  package internal(set) var change: StoreBatchChange<Value>? = nil
  package internal(set) var requirements: [StoreTag?] = []

  package var keyName: StoreKeyName { key.keyName }
  package var typed: StoreBatchEntry<Value> { self }
}

package enum StoreBatchChange<Value: Codable & Sendable>: Sendable {
  case save(Value)
  case remove
}

/// A ``StoreBatchEntry`` of any type of value.
package protocol AnyStoreBatchEntry: Sendable {
  associatedtype Value: Codable & Sendable

  var keyName: StoreKeyName { get }

  /// The entry with its type.
  var typed: StoreBatchEntry<Value> { get }
}
