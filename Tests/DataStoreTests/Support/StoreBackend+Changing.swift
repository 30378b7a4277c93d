import Foundation

@testable import DataStore

/// Commits of a single change.
extension StoreBackend {
  mutating func write(_ bytes: Data, to name: String) throws(StoreError) {
    _ = try commit([StoreWrite(name: name, bytes: bytes)]) { _ in .proceed(removing: []) }
  }

  mutating func remove(_ name: String) throws(StoreError) {
    _ = try commit([]) { (backend: inout Self) throws(StoreError) in
      .proceed(removing: try backend.read(name) == nil ? [] : [name])
    }
  }
}

/// Returns the bytes of a value as a store writes them.
func encodedEnvelope(
  _ value: some Codable & Sendable, savedAt: Date = Date(), schema: Int = 1, tag: StoreTag = StoreTag()
) throws -> Data {
  try Envelope.encode(
    Envelope.Header(schema: schema, savedAt: savedAt, tag: tag, partIDs: nil),
    body: JSONEncoder.ofWholeValues.encode(value))
}

extension InMemoryBackend {
  /// Makes a commit with a fixed decision.
  func make(_ writes: [StoreWrite], _ decision: CommitDecision) throws(StoreError) -> Bool {
    // A copy has the same storage.
    var backend = self
    return try backend.commit(writes) { _ in decision }
  }
}
