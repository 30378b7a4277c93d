import DataStore
import Multicast
import Testing

/// A commit of another store is one element to the observers of a collection, whichever call notices it first.
@Suite struct ExternalCommitTests {
  /// What the observed store does right after another one has committed.
  enum Call: CaseIterable {
    case load, save, remove, commit, changes, observe
  }

  private let temporary = TemporaryFolder()
  private let keys = (0..<3).map { StoreKey<Int>("numbers", id: "\($0)") }

  @Test(arguments: DurableStore.allCases, Call.allCases)
  func `A call that notices one key of an external commit notices all of them`(
    kind: DurableStore, call: Call
  ) async throws {
    let (store, other) = (kind.open(in: temporary), kind.open(in: temporary))
    var changes = try await store.observe(collection: "numbers", as: Int.self).changes.makeAsyncIterator()
    var values: [String?: Int] = [:]
    for number in 1...20 {
      var batch = StoreBatch()
      for key in keys { batch.save(number, for: key) }
      try await other.commit(batch)
      switch call {
      case .load: #expect(try await store.load(keys[1])?.value == number)
      case .save: try await store.save(-number, for: keys[1])
      case .remove: try await store.remove(keys[1])
      case .commit:
        var batch = StoreBatch()
        for key in keys.dropFirst() { batch.save(-number, for: key) }
        try await store.commit(batch)
      case .changes: _ = try await store.changes(of: keys[1])
      case .observe: _ = try await store.observe(collection: "numbers", as: Int.self)
      }
      // Those of the other store are one element, which comes before the call's own one.
      var elements: [[Int?]] = []
      let hasOwn = [.save, .remove, .commit].contains(call)
      for _ in 0..<(hasOwn ? 2 : 1) {
        for change in await changes.next() ?? [] { values[change.key.id] = change.stored?.value }
        elements.append(keys.map { values[$0.id] })
      }
      #expect(elements[0] == [number, number, number])
      switch call {
      case .load, .changes, .observe: break
      case .save: #expect(elements[1] == [number, -number, number])
      case .remove: #expect(elements[1] == [number, nil, number])
      case .commit: #expect(elements[1] == [number, -number, -number])
      }
    }
  }
}
