/// Several saves and removals that a store applies as one change, with preconditions.
///
/// ```swift
/// var batch = StoreBatch()
/// batch.save(reply, for: .inbox(of: "0"))
/// batch.remove(queued)
/// try await store.commit(batch)
/// ```
///
/// A later save or removal of the same key replaces an earlier one. Preconditions of a key accumulate.
public struct StoreBatch: Sendable {
  /// The changes and preconditions of each key, in the order in which the keys were first added.
  package private(set) var entries: [any AnyStoreBatchEntry] = []
  private var indices: [StoreKeyName: Int] = [:]

  /// The tag of the commit; see ``StoredValue/tag``.
  public let tag: StoreTag

  /// Creates an empty batch.
  ///
  /// - Parameter tag: The tag of the commit, which must not be that of another commit. Who chooses it recognizes the
  ///   commit in a ``StoreFeed`` before the call that makes it returns.
  public init(tag: StoreTag = StoreTag()) { self.tag = tag }

  /// The keys that the batch changes or has preconditions on, in the order in which they were first added.
  ///
  /// - Complexity: O(*n*), where *n* is the number of keys.
  public var keys: [StoreKeyName] { entries.map(\.keyName) }

  /// Adds a save.
  public mutating func save<Value>(_ value: Value, for key: StoreKey<Value>) {
    edit(key) { $0.change = .save(value) }
  }

  /// Adds a removal.
  ///
  /// If nothing is stored, the removal changes nothing.
  public mutating func remove<Value>(_ key: StoreKey<Value>) {
    edit(key) { $0.change = .remove }
  }

  /// Adds a precondition: the stored value of a key was written by a certain commit.
  ///
  /// If it wasn't, the commit of this batch throws ``StoreError/preconditionFailed(_:)`` and makes none of its changes.
  /// The tags are compared under the lock or in the transaction in which the changes are made.
  ///
  /// - Parameters:
  ///   - tag: The tag that the stored value must have; `nil` to require that nothing is stored.
  ///   - key: The key of the value.
  public mutating func require<Value>(_ tag: StoreTag?, of key: StoreKey<Value>) {
    edit(key) { $0.requirements.append(.tag(tag)) }
  }

  /// Adds a precondition: this program still finds what a load of a key has found.
  ///
  /// It differs from ``require(_:of:)`` if the load has found no value because the stored one can't be decoded. The
  /// commit may then replace that value, which quarantines its bytes.
  ///
  /// - Parameters:
  ///   - tag: The tag of the loaded value; `nil` to require that nothing is stored that this program can use.
  ///   - key: The key of the value.
  package mutating func requireFound<Value>(_ tag: StoreTag?, of key: StoreKey<Value>) {
    edit(key) { $0.requirements.append(tag.map { .tag($0) } ?? .nothingUsable) }
  }

  private mutating func edit<Value>(_ key: StoreKey<Value>, _ body: (inout StoreBatchEntry<Value>) -> Void) {
    // A key that was already added with another type of value gets a second entry, which makes the commit throw.
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

/// The change and the preconditions of one key in a batch.
package struct StoreBatchEntry<Value: Codable & Sendable>: AnyStoreBatchEntry {
  package let key: StoreKey<Value>
  /// The change of the key; `nil` if the batch only has preconditions on it.
  package internal(set) var change: StoreBatchChange<Value>? = nil
  package internal(set) var requirements: [StoreRequirement] = []

  package var keyName: StoreKeyName { key.keyName }
  package var typed: StoreBatchEntry<Value> { self }
}

package enum StoreBatchChange<Value: Codable & Sendable>: Sendable {
  case save(Value)
  case remove
}

/// A precondition on the stored value of a key.
package enum StoreRequirement: Hashable, Sendable {
  /// The stored value has this tag, or, if the tag is `nil`, nothing is stored.
  case tag(StoreTag?)
  /// Nothing is stored, or the stored value can't be decoded or migrated.
  case nothingUsable

  /// Returns whether a stored value meets the requirement.
  ///
  /// - Parameters:
  ///   - tag: The tag of the stored value; `nil` if nothing is stored.
  ///   - isUsable: Whether there is a stored value that can be decoded.
  package func isMet(by tag: StoreTag?, isUsable: Bool) -> Bool {
    switch self {
    case .tag(let required): required == tag
    case .nothingUsable: !isUsable
    }
  }
}

/// A ``StoreBatchEntry`` of any type of value.
package protocol AnyStoreBatchEntry: Sendable {
  associatedtype Value: Codable & Sendable

  var keyName: StoreKeyName { get }

  /// The entry with its type.
  var typed: StoreBatchEntry<Value> { get }
}
