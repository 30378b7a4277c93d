package import Foundation

/// Keeps bytes in an ``InMemoryStorage``.
package struct InMemoryBackend: StoreBackend, Sendable {
  private let storage: InMemoryStorage

  package init(storage: InMemoryStorage) {
    self.storage = storage
  }

  package func read(_ name: String) -> Data? {
    storage[name]
  }

  package mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    while true {
      let version = storage.version
      guard case .proceed(let removals) = try decide(&self) else { return false }
      // Nothing is locked while `decide` runs, so it runs again if anything changed meanwhile.
      if storage.apply(writes, removing: removals, ifVersionIs: version) { return true }
    }
  }

  package func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    storage.move(bytes, from: name) { Self.quarantineName(for: name, at: time, attempt: $0) }
  }

  package func names() -> [String] {
    storage.names.filter { StoreKeyName(encoded: $0) != nil }
  }

  package mutating func snapshot<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    while true {
      let version = storage.version
      let result = try body(&self)
      if storage.version == version { return result }
    }
  }
}
