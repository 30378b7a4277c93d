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
      let earlyObservers = [stream.subscribe(), try await store.changes(of: key).subscribe()]
      var changes: [Change] = []
      for number in 1...5 {
        changes.append(.saved(key, try await store.save(Note("note", number: Double(number)), for: key)))
      }
      let lateObserver = stream.subscribe()
      changes.append(.saved(key, try await store.save(Note("last"), for: key)))
      for observer in earlyObservers {
        try expect(await read(changes.count, from: observer, on: harness), is: changes, "an early observer")
      }
      try expect(await read(2, from: lateObserver, on: harness), is: changes.suffix(2), "a late observer")
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
      let earlyObserver = try await store.changes(of: key).subscribe()
      try await store.remove(key)
      // The second removal finds no value, and changes nothing.
      try await store.remove(key)
      let lateObserver = try await store.changes(of: key).subscribe()
      let last = try await store.save(Note("last"), for: key)
      try expect(
        await read(3, from: earlyObserver, on: harness),
        is: [.saved(key, first), .removed(key, revision: 2), .saved(key, last)], "an early observer")
      try expect(await read(1, from: lateObserver, on: harness), is: [.saved(key, last)], "a late observer")
      try expect(last.revision, is: 3, "the revision after the removals")
    },
    Check("An observer that subscribes during saves receives the newest value, then every later one") { harness in
      let store = try await harness.open()
      let stream = try await store.changes(of: key)
      let saveCount = 40
      let hasSaved = Lock(false)
      async let saving: Void = {
        defer { hasSaved.withLock { $0 = true } }
        try await saveNotes(numbered: 1...saveCount, in: store)
      }()
      var observers: [(subscription: MulticastSubscription<Change, Never>, storedNumber: Int)] = []
      repeat {
        let storedNumber = Int(try await store.load(key)?.value.number ?? 0)
        observers.append((stream.subscribe(), storedNumber))
        await Task.yield()
      } while !hasSaved.withLock { $0 }
      try await saving
      // After this save, each observer has at least one more change to receive.
      try await saveNotes(numbered: saveCount + 1...saveCount + 1, in: store)
      for (observer, storedNumber) in observers {
        let firstChange = try await read(1, from: observer, on: harness)[0]
        let firstNumber = Int(firstChange.stored?.value.number ?? 0)
        let newestValues = storedNumber...saveCount
        try expect(newestValues.contains(firstNumber), is: true, "whether \(firstNumber) is in \(newestValues)")
        let rest = try await read(saveCount + 1 - firstNumber, from: observer, on: harness)
        try expect(
          rest.map(\.stored?.value.number), is: (firstNumber..<saveCount + 1).map { Double($0 + 1) },
          "the changes after \(firstNumber)")
      }
    },
  ]

  /// The rules about observing a collection.
  static let collectionChecks = [
    Check("Observing a collection returns the stored values in save order, then every change") { harness in
      let store = try await harness.open()
      let (zoeKey, adamKey, keyWithoutID) = (Key("note", id: "Zoe"), Key("note", id: "Adam"), Key("note"))
      try await store.save(Note("old"), for: adamKey)
      let first = try await store.save(Note("first"), for: zoeKey)
      let second = try await store.save(Note("second"), for: adamKey)
      let third = try await store.save(Note("third"), for: keyWithoutID)
      try await store.save(Note("another collection"), for: Key("letter", id: "Zoe"))
      let observation = try await store.observe(collection: "note", as: Note.self)
      try expect(
        observation.stored,
        is: [
          .init(key: zoeKey, stored: first), .init(key: adamKey, stored: second),
          .init(key: keyWithoutID, stored: third),
        ], "the stored values")

      let later = try await store.save(Note("later"), for: adamKey)
      try await store.save(Note("another collection"), for: Key("letter", id: "Zoe"))
      try await store.remove(zoeKey)
      let last = try await store.save(Note("last"), for: Key("note", id: "New"))
      // The save in the other collection takes the revision between those of `later` and the removal.
      try expect(
        await read(3, from: observation.changes, on: harness),
        is: [
          [.saved(adamKey, later)], [.removed(zoeKey, revision: later.revision + 2)],
          [.saved(Key("note", id: "New"), last)],
        ], "the changes")
    },
    Check("A reopened store returns the values of a collection in the order of their save times") { harness in
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
      try expect(observation.stored, is: entries, "the stored values")
    },
    Check("Observing a collection during saves misses no change and repeats none") { harness in
      let store = try await harness.open()
      let saveCount = 40
      let hasSaved = Lock(false)
      async let saving: Void = {
        defer { hasSaved.withLock { $0 = true } }
        try await saveNotes(numbered: 1...saveCount, in: store)
      }()
      var observations: [StoreObservation<Note>] = []
      repeat {
        observations.append(try await store.observe(collection: key.collection, as: Note.self))
        await Task.yield()
      } while !hasSaved.withLock { $0 }
      try await saving
      // After this save, each observer has at least one more change to receive.
      try await saveNotes(numbered: saveCount + 1...saveCount + 1, in: store)
      for observation in observations {
        let storedNumber = Int(observation.stored.first?.stored.value.number ?? 0)
        let rest = try await read(saveCount + 1 - storedNumber, from: observation.changes, on: harness)
        try expect(
          rest.map { $0.map(\.stored?.value.number) }, is: (storedNumber..<saveCount + 1).map { [Double($0 + 1)] },
          "the changes after \(storedNumber)")
      }
    },
    Check("Concurrent saves have one order, which is the same for all observers and the stored values") { harness in
      let store = try await harness.open()
      let keys = ["Jake", "Mattt", "Taylor"].map { Key("note", id: $0) }
      let collectionObservers = [
        try await store.observe(collection: "note", as: Note.self).changes,
        try await store.observe(collection: "note", as: Note.self).changes,
      ]
      let keyObservers = [
        try await store.changes(of: keys[0]).subscribe(), try await store.changes(of: keys[1]).subscribe(),
        try await store.changes(of: keys[2]).subscribe(),
      ]
      let (taskCount, savesPerTask) = (6, 10)
      let changes = try await withThrowingTaskGroup(of: [Change].self) { group in
        for task in 0..<taskCount {
          group.addTask {
            var changes: [Change] = []
            for number in 0..<savesPerTask {
              let key = keys[(task + number) % keys.count]
              changes.append(.saved(key, try await store.save(Note("\(task)", number: Double(number)), for: key)))
            }
            return changes
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      // The revisions that the saves returned define the order.
      let orderedChanges = changes.sorted { $0.revision < $1.revision }
      try expect(orderedChanges.map(\.revision), is: Array(1...UInt64(changes.count)), "the revisions")
      for observer in collectionObservers {
        try expect(
          await read(changes.count, from: observer, on: harness), is: orderedChanges.map { [$0] },
          "an observer of the collection")
      }
      for (key, observer) in zip(keys, keyObservers) {
        let changesOfKey = orderedChanges.filter { $0.key == key }
        try expect(
          await read(changesOfKey.count, from: observer, on: harness), is: changesOfKey, "an observer of \(key)")
        try expect(await store.load(key), is: changesOfKey.last?.stored, "the stored value of \(key)")
      }
    },
  ]

  /// Saves notes with these numbers for ``key``, one after the other.
  private static func saveNotes(numbered numbers: ClosedRange<Int>, in store: any KeyValueStore) async throws {
    for number in numbers { try await store.save(Note("note", number: Double(number)), for: key) }
  }
}
