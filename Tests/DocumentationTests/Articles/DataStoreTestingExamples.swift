import DataStore
import DataStoreTesting

/// The code of `DataStoreTesting.md`, copied unchanged so that the compiler checks it.
enum DataStoreTestingExamples {
  static func firstExample(print: @escaping Print) async throws {
    for check in StoreConformance.checks where !check.needsCorruption {
      let storage = InMemoryStorage()
      try await check.run(on: StoreHarness { InMemoryStore(storage: storage) })
    }
    print("InMemoryStore keeps the rules.")
  }
}
