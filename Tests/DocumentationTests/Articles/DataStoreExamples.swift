import DataStore
import Foundation
import Multicast

/// The code of `DataStore.md`, copied unchanged so that the compiler checks it.
enum DataStoreExamples {
  static func keepAName(print: Print) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "names-\(UUID())")
    let store = FileStore(folder: folder)
    let name = StoreKey<String>("name", id: "0")

    try await store.save("Jake", for: name)
    for await change in try await store.changes(of: name) {
      print(change.stored?.value ?? "nobody")  // Jake
      break
    }
  }

  static func incrementCount(in store: any KeyValueStore) async throws {
    let count = StoreKey<Int>("count")
    let stored = try await store.load(count)

    var batch = StoreBatch()
    batch.require(stored?.tag, of: count)
    batch.save((stored?.value ?? 0) + 1, for: count)
    try await store.commit(batch)  // throws StoreError.preconditionFailed if another process was faster
  }
}
