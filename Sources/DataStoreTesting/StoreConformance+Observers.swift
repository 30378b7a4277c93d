internal import DataStore
internal import Multicast

extension StoreConformance {
  /// The rules about observing one key.
  static let observerChecks = [
    Check("An empty store sends nothing until the first save") { harness in
      let store = try await harness.open()
      let observer = try await store.changes(of: key).subscribe()
      let first = try await store.save(Note("first"), for: key)
      try expect(await read(1, from: observer, on: harness), is: [.saved(key, first)], "the first change")
    },
    Check("A value stored before the store was opened is sent first") { harness in
      let before = try await harness.open().save(Note("before"), for: key)
      let store = try await harness.open()
      let observer = try await store.changes(of: key).subscribe()
      let after = try await store.save(Note("after"), for: key)
      let replayed = StoredValue(value: before.value, savedAt: before.savedAt, revision: 0, tag: before.tag)
      try expect(
        await read(2, from: observer, on: harness), is: [.saved(key, replayed), .saved(key, after)], "the changes")
    },
    Check("Every save reaches every observer once, in order") { harness in
      let store = try await harness.open()
      let stream = try await store.changes(of: key)
      let early = [stream.subscribe(), try await store.changes(of: key).subscribe()]
      var changes: [Change] = []
      for number in 1...5 {
        changes.append(.saved(key, try await store.save(Note("note", number: Double(number)), for: key)))
      }
      let late = stream.subscribe()
      changes.append(.saved(key, try await store.save(Note("last"), for: key)))
      for observer in early {
        try expect(await read(6, from: observer, on: harness), is: changes, "an early observer")
      }
      try expect(await read(2, from: late, on: harness), is: changes.suffix(2), "a late observer")
    },
    Check("Saving an equal value again is a change") { harness in
      let store = try await harness.open()
      let observer = try await store.changes(of: key).subscribe()
      let first = try await store.save(Note("same"), for: key)
      let second = try await store.save(Note("same"), for: key)
      try expect(
        await read(2, from: observer, on: harness), is: [.saved(key, first), .saved(key, second)], "the changes")
    },
    Check("An observer receives only changes of its own key") { harness in
      let store = try await harness.open()
      let observer = try await store.changes(of: key).subscribe()
      try await store.save(Note("another id"), for: Key("note", id: "Mattt"))
      try await store.save(Note("no id"), for: Key("note"))
      try await store.save(Note("another collection"), for: Key("letter", id: "Jake"))
      let own = try await store.save(Note("own"), for: key)
      try expect(await read(1, from: observer, on: harness), is: [.saved(key, own)], "the first change")
    },
    Check("A removal reaches every observer, and a later observer starts without a value") { harness in
      let store = try await harness.open()
      let first = try await store.save(Note("first"), for: key)
      let early = try await store.changes(of: key).subscribe()
      try await store.remove(key)
      try await store.remove(key)
      let late = try await store.changes(of: key).subscribe()
      let last = try await store.save(Note("last"), for: key)
      try expect(
        await read(3, from: early, on: harness),
        is: [.saved(key, first), .removed(key, revision: 2), .saved(key, last)], "an early observer")
      try expect(await read(1, from: late, on: harness), is: [.saved(key, last)], "a late observer")
      try expect(last.revision, is: 3, "the revision after the removals")
    },
    Check("An observer that subscribes during saves receives the newest value, then every later one") { harness in
      let store = try await harness.open()
      let stream = try await store.changes(of: key)
      let last = 40
      async let saving: Void = saveNumbers(1...last, in: store)
      var observers: [MulticastSubscription<Change, Never>] = []
      while try await store.load(key)?.value.number != Double(last) {
        observers.append(stream.subscribe())
        await Task.yield()
      }
      try await saving
      try await saveNumbers(last + 1...last + 1, in: store)
      for observer in observers {
        let first = try await read(1, from: observer, on: harness)[0]
        let number = Int(first.stored?.value.number ?? 0)
        let rest = try await read(last + 1 - number, from: observer, on: harness)
        try expect(
          rest.map(\.stored?.value.number), is: (number...last).map { Double($0 + 1) }, "the changes after \(number)")
      }
    },
  ]

  /// The rules about observing a collection.
  static let collectionChecks = [
    Check("Observing a collection returns the stored values in save order, then every change") { harness in
      let store = try await harness.open()
      let (zoe, adam, unnamed) = (Key("note", id: "Zoe"), Key("note", id: "Adam"), Key("note"))
      try await store.save(Note("old"), for: adam)
      let first = try await store.save(Note("1"), for: zoe)
      let second = try await store.save(Note("2"), for: adam)
      let third = try await store.save(Note("3"), for: unnamed)
      try await store.save(Note("another collection"), for: Key("letter", id: "Zoe"))
      let observation = try await store.observe(collection: "note", as: Note.self)
      try expect(
        observation.stored,
        is: [.init(key: zoe, stored: first), .init(key: adam, stored: second), .init(key: unnamed, stored: third)],
        "what is stored")

      let later = try await store.save(Note("5"), for: adam)
      try await store.save(Note("another collection"), for: Key("letter", id: "Zoe"))
      try await store.remove(zoe)
      let last = try await store.save(Note("7"), for: Key("note", id: "New"))
      try expect(
        await read(3, from: observation.changes, on: harness),
        is: [
          [.saved(adam, later)], [.removed(zoe, revision: later.revision + 2)],
          [.saved(Key("note", id: "New"), last)],
        ], "the changes")
    },
    Check("A reopened store returns the values of a collection in the order of the times of their saves") { harness in
      let store = try await harness.open()
      var entries: [StoreObservation<Note>.Entry] = []
      for id in ["Zoe", "Adam", "Mattt"] {
        let saved = try await store.save(Note(id), for: Key("note", id: id))
        entries.append(
          .init(
            key: Key("note", id: id),
            stored: .init(value: saved.value, savedAt: saved.savedAt, revision: 0, tag: saved.tag)))
      }
      // The times may not follow the order of the saves, because two saves may have the same time, and a clock may be
      // set back. Values with the same time are ordered by their ids.
      entries.sort { ($0.stored.savedAt, $0.key.id!) < ($1.stored.savedAt, $1.key.id!) }
      let observation = try await harness.open().observe(collection: "note", as: Note.self)
      try expect(observation.stored, is: entries, "what is stored")
    },
    Check("Observing a collection during saves misses no change and repeats none") { harness in
      let store = try await harness.open()
      let last = 40
      async let saving: Void = saveNumbers(1...last, in: store)
      var observations: [StoreObservation<Note>] = []
      while try await store.load(key)?.value.number != Double(last) {
        observations.append(try await store.observe(collection: key.collection, as: Note.self))
        await Task.yield()
      }
      try await saving
      try await saveNumbers(last + 1...last + 1, in: store)
      for observation in observations {
        let number = Int(observation.stored.first?.stored.value.number ?? 0)
        let rest = try await read(last + 1 - number, from: observation.changes, on: harness)
        try expect(
          rest.map { $0[0].stored?.value.number }, is: (number...last).map { Double($0 + 1) },
          "the changes after \(number)")
      }
    },
    Check("Concurrent saves have one order, which is the same for all observers and the stored values") { harness in
      let store = try await harness.open()
      let keys = ["Jake", "Mattt", "Taylor"].map { Key("note", id: $0) }
      let observers = [
        try await store.observe(collection: "note", as: Note.self).changes,
        try await store.observe(collection: "note", as: Note.self).changes,
      ]
      let ownObservers = [
        try await store.changes(of: keys[0]).subscribe(), try await store.changes(of: keys[1]).subscribe(),
        try await store.changes(of: keys[2]).subscribe(),
      ]
      let changes = try await withThrowingTaskGroup(of: [Change].self) { group in
        for task in 0..<6 {
          group.addTask {
            var changes: [Change] = []
            for number in 0..<10 {
              let key = keys[(task + number) % keys.count]
              changes.append(.saved(key, try await store.save(Note("\(task)", number: Double(number)), for: key)))
            }
            return changes
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      // The revisions that the saves returned define the order.
      let inOrder = changes.sorted { $0.revision < $1.revision }
      try expect(inOrder.map(\.revision), is: Array(1...60), "the revisions")
      for observer in observers {
        try expect(
          await read(60, from: observer, on: harness), is: inOrder.map { [$0] }, "an observer of the collection")
      }
      for (key, observer) in zip(keys, ownObservers) {
        let own = inOrder.filter { $0.key == key }
        try expect(await read(own.count, from: observer, on: harness), is: own, "an observer of \(key)")
        try expect(await store.load(key), is: own.last?.stored, "what is stored for \(key)")
      }
    },
  ]

  private static func saveNumbers(_ numbers: ClosedRange<Int>, in store: any KeyValueStore) async throws {
    for number in numbers { try await store.save(Note("note", number: Double(number)), for: key) }
  }
}
