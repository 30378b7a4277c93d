internal import DataStore
internal import Foundation
internal import Multicast

extension StoreConformance {
  /// The rules about values whose schema changes between versions of a program.
  static let schemaChecks = [
    Check("Each read migrates a value of an older schema, but only a save replaces the stored bytes") { harness in
      let old = try await harness.open().save(OldLetter(text: "Dear Jake"), for: oldLetterKey)
      let expected = StoredValue(
        value: Letter(words: ["Dear", "Jake"]), savedAt: old.savedAt, revision: 0, tag: old.tag)
      for _ in 1...2 {
        let store = try await harness.open()
        try expect(await store.load(letterKey), is: expected, "load")
        let observer = try await store.changes(of: letterKey).subscribe()
        try expect(await read(1, from: observer, on: harness), is: [.saved(letterKey, expected)], "the first change")
        let observation = try await store.observe(collection: letterKey.collection, as: Letter.self)
        try expect(observation.stored, is: [.init(key: letterKey, stored: expected)], "what is stored")
      }
      try expect(await harness.open().load(oldLetterKey)?.value, is: old.value, "the old program's load")
      let new = try await harness.open().save(Letter(words: ["new"]), for: letterKey)
      try expect(await harness.open().load(letterKey)?.value, is: new.value, "load after a save")
    },
    Check("A value of a future schema is neither read, nor replaced, nor removed") { harness in
      let new = try await harness.open().save(Letter(words: ["new"]), for: letterKey)
      let store = try await harness.open()
      try await expectFutureSchemaError(from: "load") { () throws(StoreError) in try await store.load(oldLetterKey) }
      try await expectFutureSchemaError(from: "save") { () throws(StoreError) in
        try await store.save(OldLetter(text: "old"), for: oldLetterKey)
      }
      try await expectFutureSchemaError(from: "remove") { () throws(StoreError) in
        try await store.remove(oldLetterKey)
      }
      try await expectFutureSchemaError(from: "changes") { () throws(StoreError) in
        try await store.changes(of: oldLetterKey)
      }
      let observation = try await store.observe(collection: oldLetterKey.collection, as: OldLetter.self)
      try expect(observation.stored.map(\.key), is: [], "the observed keys")
      let events = try await read(1, from: store.events.subscribe(), on: harness)
      guard case .newerValueLeftUntouched(oldLetterKey.keyName, let found, let supported) = events[0] else {
        throw Mismatch(explanation: "expected an event of a future schema, found \(events)")
      }
      try expect([found.schema, supported.schema], is: [2, 1], "the schemas of the event")
      try expect(await harness.open().load(letterKey)?.value, is: new.value, "the new program's load")
    },
    Check("A value whose migration fails is reported by load and by an event, and the next save replaces it") {
      harness in
      try await harness.open().save(OldLetter(text: ""), for: oldLetterKey)
      // The second load shows that the first one keeps the stored bytes.
      for _ in 1...2 {
        let store = try await harness.open()
        let isExpected = { (error: StoreError) in
          if case .migrationFailed(letterKey.keyName, from: 1, _) = error { true } else { false }
        }
        try await expectError("migrationFailed", from: "load", where: isExpected) { () throws(StoreError) in
          try await store.load(letterKey)
        }
      }
      let store = try await harness.open()
      let observer = try await store.changes(of: letterKey).subscribe()
      let events = try await read(1, from: store.events.subscribe(), on: harness)
      guard case .migrationFailed(letterKey.keyName, from: 1, _) = events[0] else {
        throw Mismatch(explanation: "expected an event of a failed migration, found \(events)")
      }
      let saved = try await store.save(Letter(words: ["good"]), for: letterKey)
      try expect(await read(1, from: observer, on: harness), is: [.saved(letterKey, saved)], "the first change")
      try expect(await harness.open().load(letterKey)?.value, is: saved.value, "load after opening again")
    },
  ]

  private static let letterKey = StoreKey<Letter>("letter", id: "Jake")
  private static let oldLetterKey = StoreKey<OldLetter>(letterKey.keyName)

  /// Schema 1 of a letter.
  private struct OldLetter: Codable, Hashable {
    var text: String
  }

  /// Schema 2 of a letter.
  private struct Letter: VersionedValue, Hashable {
    static let schema = StoreSchema(
      version: 2,
      migrations: [
        StoreMigration(from: 1, decoding: OldLetter.self) { old in
          guard !old.text.isEmpty else { throw EmptyText() }
          return Letter(words: old.text.split(separator: " ").map(String.init))
        }
      ])

    var words: [String]
  }

  private struct EmptyText: Error {}

  private static func expectFutureSchemaError<Result>(
    from subject: String, _ body: () async throws(StoreError) -> Result
  ) async throws {
    try await expectError(
      "newerFormat", from: subject,
      where: { error in
        guard case .newerFormat(letterKey.keyName, let found, let supported) = error else { return false }
        return found.schema == 2 && supported.schema == 1
      }, body)
  }
}
