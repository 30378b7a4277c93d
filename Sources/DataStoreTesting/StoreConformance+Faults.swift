internal import DataStore
internal import Foundation
internal import Multicast

extension StoreConformance {
  /// The rules about values that can't be encoded or decoded.
  static let faultChecks = [
    Check("Saving a value that cannot be encoded throws, sends nothing, and keeps the old value") { harness in
      let store = try await harness.open()
      let old = try await store.save(Note("old"), for: key)
      let observer = try await store.changes(of: key).subscribe()
      let isExpected = { (error: StoreError) in
        if case .encodingFailed(key.keyName, _) = error { true } else { false }
      }
      try await expectError("encodingFailed", from: "save", where: isExpected) { () throws(StoreError) in
        try await store.save(.unencodable, for: key)
      }
      try expect(await store.load(key), is: old, "load")
      let new = try await store.save(Note("new"), for: key)
      try expect(new.revision, is: old.revision + 1, "the revision of the next save")
      try expect(await read(2, from: observer, on: harness), is: [.saved(key, old), .saved(key, new)], "the changes")
      try expect(await harness.open().load(key)?.value, is: new.value, "load after opening again")
    },
    Check("Corrupt bytes are reported once by load and once by an event", needsCorruption: true) { harness in
      try await saveAndCorruptValue(on: harness)
      let store = try await harness.open()
      try await expectUndecodable { () throws(StoreError) in try await store.load(key) }
      try expect(await store.load(key), is: nil, "the second load")
      try await expectQuarantineEvents(of: [key], in: store, on: harness)
      try expect(await harness.open().load(key), is: nil, "load after opening again")
    },
    Check("A stream opened on corrupt bytes delivers the next save", needsCorruption: true) { harness in
      try await saveAndCorruptValue(on: harness)
      let store = try await harness.open()
      let observer = try await store.changes(of: key).subscribe()
      try await expectQuarantineEvents(of: [key], in: store, on: harness)
      let saved = try await store.save(Note("good"), for: key)
      try expect(await read(1, from: observer, on: harness), is: [.saved(key, saved)], "the first change")
      try expect(await store.load(key), is: saved, "load")
    },
    Check("A stream continues when its value becomes corrupt", needsCorruption: true) { harness in
      let store = try await harness.open()
      let earlyObserver = try await store.changes(of: key).subscribe()
      let first = try await store.save(Note("first"), for: key)
      try await corrupt(key, on: harness)
      // This load throws, unless the store watches its medium and has quarantined the bytes already.
      do throws(StoreError) {
        _ = try await store.load(key)
      } catch {
        guard case .undecodable = error else { throw error }
      }
      try expect(await store.load(key), is: nil, "load")
      try await expectQuarantineEvents(of: [key], in: store, on: harness)
      let lateObserver = try await store.changes(of: key).subscribe()
      let second = try await store.save(Note("second"), for: key)
      try expect(
        await read(2, from: earlyObserver, on: harness), is: [.saved(key, first), .saved(key, second)],
        "an early observer")
      try expect(await read(1, from: lateObserver, on: harness), is: [.saved(key, second)], "a late observer")
    },
    Check("Observing a collection omits corrupt values", needsCorruption: true) { harness in
      try await saveAndCorruptValue(on: harness)
      let otherKey = Key("note", id: "Mattt")
      try await harness.open().save(Note("good"), for: otherKey)
      let store = try await harness.open()
      let observation = try await store.observe(collection: key.collection, as: Note.self)
      try expect(observation.stored.map(\.key), is: [otherKey], "the observed keys")
      try await expectQuarantineEvents(of: [key], in: store, on: harness)
      let saved = try await store.save(Note("good again"), for: key)
      try expect(
        await read(1, from: observation.changes, on: harness), is: [[.saved(key, saved)]], "the first change")
    },
    Check("A reopened store's first save does not overwrite corrupt bytes", needsCorruption: true) { harness in
      try await saveAndCorruptValue(on: harness)
      let store = try await harness.open()
      let saved = try await store.save(Note("good"), for: key)
      try await expectQuarantineEvents(of: [key], in: store, on: harness)
      try expect(await store.load(key), is: saved, "load")
    },
    Check("Quarantined bytes never replace earlier ones", needsCorruption: true) { harness in
      let store = try await harness.open()
      let events = store.events.subscribe()
      for _ in 1...3 {
        try await store.save(Note("good"), for: key)
        try await corrupt(key, on: harness)
        try await expectUndecodable { () throws(StoreError) in try await store.load(key) }
      }
      let places = try await read(3, from: events, on: harness).map { event in
        guard case .valueQuarantined(_, let movedTo, _) = event else {
          throw Mismatch(explanation: "expected the event of a quarantine, found \(event)")
        }
        return movedTo
      }
      try expect(Set(places).count, is: 3, "the number of different places among \(places)")
    },
    Check("A removal quarantines corrupt bytes", needsCorruption: true) { harness in
      try await saveAndCorruptValue(on: harness)
      let store = try await harness.open()
      try await store.remove(key)
      try await expectQuarantineEvents(of: [key], in: store, on: harness)
      try expect(await store.load(key), is: nil, "load")
    },
    Check("A program that can't decode a value reports it and leaves it untouched, so another one still reads it") {
      harness in
      let saved = try await harness.open().save(Note("kept"), for: key)
      let store = try await harness.open()
      for _ in 1...2 {
        try await expectUntouched { () throws(StoreError) in try await store.load(otherTypeKey) }
      }
      let observer = try await store.changes(of: otherTypeKey).subscribe()
      let events = try await read(1, from: store.events.subscribe(), on: harness)
      guard case .undecodableValueLeftUntouched(key.keyName, _) = events[0] else {
        throw Mismatch(explanation: "expected the event of a value that can't be decoded, found \(events)")
      }
      let observation = try await store.observe(collection: key.collection, as: OtherType.self)
      try expect(observation.stored.map(\.key), is: [], "the observed keys")
      // The value counts as stored, under the tag of its commit.
      for tag in [nil, StoreTag()] {
        var batch = StoreBatch()
        batch.require(tag, of: otherTypeKey)
        batch.save(OtherType(count: 1), for: otherTypeKey)
        let refusedBatch = batch
        try await expect(.preconditionFailed(key.keyName), from: "commit") { () throws(StoreError) in
          try await store.commit(refusedBatch)
        }
      }
      var batch = StoreBatch()
      batch.require(saved.tag, of: otherTypeKey)
      try await store.commit(batch)
      let loaded = try await harness.open().load(key)
      try expect(loaded?.value, is: saved.value, "load by a program that can decode the value")
      try expect(loaded?.tag, is: saved.tag, "the tag")
      let replacing = try await store.save(OtherType(count: 2), for: otherTypeKey)
      try expect(await read(1, from: observer, on: harness), is: [.saved(otherTypeKey, replacing)], "the first change")
    },
    Check(
      "A save or a removal of a value that can't be decoded keeps its bytes in quarantine", needsErasure: true
    ) { harness in
      for isSave in [true, false] {
        let text = isSave ? "replaced" : "removed"
        try await harness.open().save(Note(text), for: key)
        let store = try await harness.open()
        let changes = try await store.observe(collection: key.collection, as: OtherType.self).changes
        if isSave {
          let saved = try await store.save(OtherType(count: 1), for: otherTypeKey)
          try expect(await read(1, from: changes, on: harness), is: [[.saved(otherTypeKey, saved)]], "the changes")
        } else {
          try await store.remove(otherTypeKey)
          let removal = try await read(1, from: changes, on: harness)
          try expect(removal.map { $0.map(\.stored) }, is: [[nil]], "the changes")
        }
        try expect(await harness.open().load(otherTypeKey)?.value.count, is: isSave ? 1 : nil, "load")
        let events = try await read(2, from: store.events.subscribe(), on: harness)
        guard case .undecodableValueLeftUntouched(key.keyName, _) = events[0],
          case .valueQuarantined(key.keyName, _, _) = events[1]
        else {
          throw Mismatch(explanation: "expected the events of the observation and of a quarantine, found \(events)")
        }
        // Only an erasure passes on quarantined bytes. This one erases nothing.
        let bytes = Lock(Data())
        try await store.erase { item in
          if item.key == key.keyName { bytes.withLock { $0 += item.bytes } }
          return false
        }
        let isKept = String(decoding: bytes.withLock { $0 }, as: UTF8.self).contains("\"\(text)\"")
        try expect(isKept, is: true, "whether the bytes of the value are kept")
        try await store.erase { $0.key == key.keyName }
      }
    },
  ]

  /// The key of another program, in which the same collection has values that can't be decoded from a note.
  private static let otherTypeKey = StoreKey<OtherType>(key.keyName)

  /// A type of value that can't be decoded from a note, nor a note from it.
  private struct OtherType: Codable, Hashable {
    var count: Int
  }

  private static func expectUntouched<Result>(_ body: () async throws(StoreError) -> Result) async throws {
    try await expectError(
      "undecodable, without a place", from: "load",
      where: { error in if case .undecodable(key.keyName, movedTo: nil, _) = error { true } else { false } }, body)
  }

  static func corrupt(_ key: Key, on harness: StoreHarness) async throws {
    guard let corrupt = harness.corrupt else {
      throw Mismatch(explanation: "This check needs a harness with a `corrupt` closure. Without one, omit the check.")
    }
    try await corrupt(key.keyName)
  }

  private static func saveAndCorruptValue(on harness: StoreHarness) async throws {
    try await harness.open().save(Note("to be corrupted"), for: key)
    try await corrupt(key, on: harness)
  }

  private static func expectUndecodable<Result>(_ body: () async throws(StoreError) -> Result) async throws {
    try await expectError(
      "undecodable", from: "load",
      where: { error in if case .undecodable(key.keyName, _, _) = error { true } else { false } }, body)
  }

  /// Expects that the first events report quarantined bytes of these keys, in this order.
  ///
  /// The events may precede the call, because a new subscriber receives the last few events first.
  private static func expectQuarantineEvents(of keys: [Key], in store: any KeyValueStore, on harness: StoreHarness)
    async throws
  {
    let events = try await read(keys.count, from: store.events.subscribe(), on: harness)
    let found = events.map { event in
      if case .valueQuarantined(let keyName, _, _) = event { keyName } else { nil as StoreKeyName? }
    }
    try expect(found, is: keys.map(\.keyName), "the keys of the quarantine events")
  }
}
