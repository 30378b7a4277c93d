internal import DataStore
internal import Multicast

extension StoreConformance {
  /// The rules about concurrent saves, and about several stores over one medium.
  static let sharingChecks = [
    Check("Concurrent saves get consecutive revisions and are sent in that order, and the last value is stored") {
      harness in
      let store = try await harness.open()
      let observer = try await store.changes(of: key).subscribe()
      let count = 100
      let savedByRevision = try await withThrowingTaskGroup(of: StoredValue<Note>.self) { group in
        for number in 1...count {
          group.addTask { try await store.save(Note("note", number: Double(number)), for: key) }
        }
        return try await group.reduce(into: [:]) { $0[$1.revision] = $1 }
      }
      let savedInOrder = (1...UInt64(count)).compactMap { savedByRevision[$0] }
      try expect(savedInOrder.count, is: count, "the number of revisions from 1 to \(count)")
      try expect(
        await read(count, from: observer, on: harness), is: savedInOrder.map { .saved(key, $0) }, "the changes")
      try expect(await store.load(key), is: savedInOrder.last, "load")
      try expect(await harness.open().load(key)?.value, is: savedInOrder.last?.value, "load after opening again")
    },
    Check("A store's next call notices a change by another store over the same medium, and sends it once") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      let first = try await store.save(Note("first"), for: key)
      let observer = try await store.changes(of: key).subscribe()
      let external = try await other.save(Note("external"), for: key)
      let expected = StoredValue(value: external.value, savedAt: external.savedAt, revision: 2, tag: external.tag)
      for _ in 1...2 { try expect(await store.load(key), is: expected, "load") }
      try await other.remove(key)
      try expect(await store.load(key), is: nil, "load after the other store's removal")
      let last = try await store.save(Note("last"), for: key)
      try expect(
        await read(4, from: observer, on: harness),
        is: [.saved(key, first), .saved(key, expected), .removed(key, revision: 3), .saved(key, last)], "the changes")
      try expect(await other.load(key)?.value, is: last.value, "the other store's load")
    },
  ]
}
