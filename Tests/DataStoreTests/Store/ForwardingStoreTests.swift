import DataStore
import DataStoreTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(15))) struct ForwardingStoreTests {
  /// A store that implements no call itself.
  private struct PlainStore<Base: KeyValueStore>: ForwardingStore {
    let base: Base
  }

  @Test(arguments: StoreConformance.checks)
  func `A store that only forwards keeps the rules of its base`(check: StoreConformance.Check) async throws {
    let storage = InMemoryStorage()
    let harness = StoreHarness(isWatched: true) {
      PlainStore(base: InMemoryStore(storage: storage))
    } contents: {
      storage.names.flatMap { [Data($0.utf8), storage[$0] ?? Data()] }
    } corrupt: { key in
      storage[try key.encoded()] = Data("corrupt".utf8)
    }
    try await check.run(on: harness)
  }
}
