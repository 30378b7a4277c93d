import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// Mutations that one version of the program has made, and another one can't read.
@Suite(.timeLimit(.minutes(15))) struct HeldMutationTests {
  private let storage = InMemoryStorage()
  private let clock = ManualClock()
  private let time = Setting(Date(timeIntervalSinceReferenceDate: 0))
  private let isOffline = Setting(true)
  /// The mutations that the server received, as texts.
  private let received = Setting<[String]>([])

  /// The first version of the program's mutations.
  private enum FirstEdit: RepositoryMutation, Equatable {
    case rename(String)

    func apply(to value: inout Notes) { if case .rename(let text) = self { value.texts.append(text) } }
  }

  /// A second version, which has a value that the first one lacks, and whose form of `rename` is another one.
  private enum SecondEdit: RepositoryMutation, Equatable {
    case rename(String, note: Int)
    case annotate(String)

    func apply(to value: inout Notes) { if case .rename(let text, _) = self { value.texts.append(text) } }
  }

  /// A third version, which can read the mutations of the first one.
  private enum MigratedEdit: RepositoryMutation, VersionedValue, Equatable {
    case rename(String, note: Int)

    static let schema = StoreSchema(
      version: 2,
      migrations: [
        StoreMigration(from: 1, decoding: FirstEdit.self) { edit in
          switch edit {
          case .rename("impossible"): throw MutationConflict("There is no such name.")
          case .rename(let text): MigratedEdit.rename(text, note: 0)
          }
        }
      ])

    func apply(to value: inout Notes) { if case .rename(let text, _) = self { value.texts.append(text) } }
  }

  private typealias Program<Mutation: RepositoryMutation<Notes>> = SyncedRepository<
    ScriptedSource<String, Notes, Mutation, NotesFailure>
  >

  /// Starts a version of the program on the storage, an hour after the last one, so that no lane waits for the end of a
  /// delay.
  private func start<Mutation: RepositoryMutation<Notes>>(
    _: Mutation.Type, limits: QueueLimits = QueueLimits(), lane: String? = nil
  ) -> Program<Mutation> {
    time.value += 3600
    var configuration = RepositoryConfiguration(
      clock: clock, now: { [time] in time.value }, leadership: NoLeadership())
    configuration.queueLimits = limits
    let source = ScriptedSource<String, Notes, Mutation, NotesFailure>(
      "notes", fetch: { _ in Notes() },
      send: { [isOffline, received] (mutation, key, _) async throws(NotesFailure) in
        if isOffline.value { throw .offline }
        received.value.append("\(key) \(mutation)")
        return .done
      }, disposition: \.disposition, lane: { lane ?? $1.storeID })
    return Program(source, store: InMemoryStore(storage: storage), configuration: configuration)
  }

  /// Waits until no record is marked, so that the next program finds no interrupted attempt.
  private func waitUntilUnmarked() async throws {
    let observation = try await InMemoryStore(storage: storage).observe(
      collection: "notes.mutations", as: MutationRecord.self)
    var marked = Set(observation.stored.filter(\.stored.value.isMarked).map(\.key.keyName))
    if marked.isEmpty { return }
    for await changes in observation.changes {
      for change in changes where change.stored?.value.isMarked != true { marked.remove(change.key.keyName) }
      if marked.isEmpty { return }
    }
  }

  /// Makes mutations in the first version of the program, while the server is away.
  private func perform(_ names: String..., key: String = "a") async throws {
    let first = start(FirstEdit.self)
    for name in names { try await #expect(first.perform(.rename(name), on: key) == .queued) }
    try await waitUntilUnmarked()
  }

  // MARK: - Both directions

  @Test func `Mutations that a new version can't decode stay, are listed and counted, and the old version sends them`()
    async throws
  {
    try await perform("1", "2", "3")
    do {
      let second = start(SecondEdit.self)
      let events = second.events.subscribe()
      try await #expect(second.mutations.list().isEmpty)
      let unreadable = try await second.mutations.unreadable()
      #expect(unreadable.map(\.key) == ["a", "a", "a"])
      #expect(unreadable.map(\.schema) == [1, 1, 1])
      #expect(unreadable.allSatisfy { $0.reason.contains("note") && $0.byteCount == 21 && $0.madeAt != nil })
      await events.reaches {
        if case .mutationUnreadable(unreadable[2].id, movedTo: nil, _) = $0 { true } else { false }
      }
      let report = await second.report()
      #expect(report.unreadable.map(\.id) == unreadable.map(\.id))
      #expect(report.queueByteCount == 63)
      #expect("\(report)".contains("unreadable mutation \(unreadable[0].id): of a, 21 bytes"))
      await #expect(second.state(of: "a").isPending)
      await #expect(second.state(of: "b").isPending == false)
      // The mutations behind them wait, and those of other lanes don't.
      isOffline.value = false
      try await #expect(second.perform(.annotate("4"), on: "a") == .queued)
      try await #expect(second.perform(.rename("4", note: 1), on: "b") == .confirmed)
      #expect(await second.report().lanes.map(\.status) == [.held])
      #expect(received.value == [#"b rename("4", note: 1)"#])
    }
    let first = start(FirstEdit.self)
    try await first.waitForPendingMutations()
    #expect(received.value.dropFirst() == [#"a rename("1")"#, #"a rename("2")"#, #"a rename("3")"#])
    try await #expect(first.mutations.unreadable().map(\.key) == ["a"])
    let second = start(SecondEdit.self)
    try await second.waitForPendingMutations()
    #expect(received.value.last == #"a annotate("4")"#)
  }

  @Test func `Mutations of a future schema are held by an old version, and sent by the new one`() async throws {
    do {
      let migrated = start(MigratedEdit.self)
      try await #expect(migrated.perform(.rename("1", note: 1), on: "a") == .queued)
      try await waitUntilUnmarked()
    }
    isOffline.value = false
    do {
      let first = start(FirstEdit.self)
      let events = first.events.subscribe()
      let id = try #require(try await first.mutations.unreadable().first?.id)
      try await #expect(first.mutations.unreadable().map(\.schema) == [2])
      await events.reaches { $0 == .mutationOfFutureSchema(id) }
      try await #expect(first.perform(.rename("2"), on: "a") == .queued)
      // It doesn't wait for the held mutation.
      await first.retryNow()
      #expect(received.value.isEmpty)
    }
    let migrated = start(MigratedEdit.self)
    try await migrated.waitForPendingMutations()
    #expect(received.value == [#"a rename("1", note: 1)"#, #"a rename("2", note: 0)"#])
  }

  @Test func `A mutation is migrated each time it is read, and one whose migration fails is held`() async throws {
    try await perform("1")
    try await perform("impossible", key: "b")
    let migrated = start(MigratedEdit.self)
    let events = migrated.events.subscribe()
    try await #expect(migrated.mutations.list().map(\.mutation) == [.rename("1", note: 0)])
    let held = try #require(try await migrated.mutations.unreadable().first)
    #expect((held.key, held.schema) == ("b", 1))
    await events.reaches { if case .mutationNotMigrated(held.id, _) = $0 { true } else { false } }
    isOffline.value = false
    try await migrated.waitForPendingMutations()
    #expect(received.value == [#"a rename("1", note: 0)"#])
    isOffline.value = true
    let first = start(FirstEdit.self)
    try await #expect(first.mutations.list().map(\.mutation) == [.rename("impossible")])
  }

  // MARK: - Deciding

  @Test func `A held mutation can be discarded, and the mutations behind it are sent then`() async throws {
    try await perform("1")
    isOffline.value = false
    let second = start(SecondEdit.self)
    let id = try #require(try await second.mutations.unreadable().first?.id)
    try await #expect(second.perform(.rename("2", note: 1), on: "a") == .queued)
    await #expect(throws: PendingMutationError.unknown(id)) { try await second.mutations.cancel(id) }
    try await second.mutations.discard(id)
    try await second.waitForPendingMutations()
    #expect(received.value == [#"a rename("2", note: 1)"#])
    try await #expect(second.mutations.unreadable().isEmpty)
    await #expect(second.state(of: "a").isPending == false)
    await #expect(throws: PendingMutationError.unknown(id)) { try await second.mutations.discard(id) }
  }

  @Test func `A held mutation that another version may be sending, or has changed, isn't discarded`() async throws {
    try await perform("1")
    let second = start(SecondEdit.self)
    let id = try #require(try await second.mutations.unreadable().first?.id)
    let other = InMemoryStore(storage: storage)
    let key = MutationKeys(repository: "notes").record(id)
    var record = try #require(try await other.load(key)?.value)
    record.isMarked = true
    try await other.save(record, for: key)
    // Whether or not the second version knows of the change already.
    await #expect(throws: PendingMutationError.alreadySent(id)) { try await second.mutations.discard(id) }
    try await #expect(other.load(key) != nil)
    try await other.remove(key)
    let changes = second.mutations.changes.subscribe()
    _ = await changes.first(1)
    await #expect(throws: PendingMutationError.self) { try await second.mutations.discard(id) }
    try await #expect(second.mutations.unreadable().isEmpty)
  }

  @Test func `Held mutations count towards the limits of the queue`() async throws {
    try await perform("1", "2")
    let second = start(SecondEdit.self, limits: QueueLimits(maximumCount: 3))
    try await #expect(second.perform(.rename("3", note: 1), on: "b") == .queued)
    await #expect(throws: NotesError.queueFull) { try await second.perform(.rename("4", note: 1), on: "b") }
    let third = start(SecondEdit.self, limits: QueueLimits(maximumBytes: 50))
    await #expect(throws: NotesError.queueFull) { try await third.perform(.rename("4", note: 1), on: "c") }
  }

  // MARK: - While both versions run

  @Test func `A mutation that another version changes is no longer shown, and is shown again once it can be read`()
    async throws
  {
    let first = start(FirstEdit.self)
    try await first.reload("a")
    try await #expect(first.perform(.rename("1"), on: "a") == .queued)
    try await waitUntilUnmarked()
    let id = try #require(try await first.mutations.list().first?.id)
    let observer = first.values(of: "a").subscribe()
    #expect(await observer.first(1) == [Notes("1")])
    let other = InMemoryStore(storage: storage)
    let key = MutationKeys(repository: "notes").record(id)
    let record = try #require(try await other.load(key)?.value)
    try await other.save(
      MutationRecord.sample(SecondEdit.annotate("1"), sequence: record.sequence), for: key)
    // The store notices the change when it is used.
    try await first.reload("b")
    await observer.reaches { $0 == Notes() }
    try await #expect(first.mutations.list().isEmpty)
    try await #expect(first.mutations.unreadable().map(\.id) == [id])
    try await other.save(MutationRecord.sample(FirstEdit.rename("2"), sequence: record.sequence), for: key)
    try await first.reload("b")
    await observer.reaches { $0 == Notes("2") }
    try await #expect(first.mutations.list().map(\.mutation) == [.rename("2")])
    try await #expect(first.mutations.unreadable().isEmpty)
  }

  // MARK: - Records

  @Test func `Mutations are sent in the lanes in which they were made`() async throws {
    do {
      let first = start(FirstEdit.self, lane: "one")
      try await #expect(first.perform(.rename("1"), on: "a") == .queued)
      try await waitUntilUnmarked()
    }
    let second = start(FirstEdit.self)
    #expect(await second.report().lanes.map(\.lane) == ["one"])
  }

  /// A record as version 0.1.0 wrote it.
  private struct EarlierRecord<Mutation: Codable & Sendable>: Codable, Sendable {
    let key: String
    let sequence: UInt64
    let madeAt: Date
    let mutation: Mutation
    let byteCount: Int
    let attempts: Int
    let unfinishedAttempts: Int
    let isOutcomeUnknown: Bool
  }

  @Test func `Records of version 0.1.0 are read, and their mutations migrated`() async throws {
    let store = InMemoryStore(storage: storage)
    let record = EarlierRecord(
      key: "a", sequence: 1, madeAt: Date(timeIntervalSinceReferenceDate: 7), mutation: FirstEdit.rename("1"),
      byteCount: 21, attempts: 2, unfinishedAttempts: 2, isOutcomeUnknown: false)
    try await store.save(record, for: StoreKey("notes.mutations", id: "id"))
    let current = try #require(
      try await InMemoryStore(storage: storage).load(StoreKey<MutationRecord>("notes.mutations", id: "id"))?.value)
    #expect((current.isMarked, current.interruptedAttempts, current.attempts) == (true, 1, 2))
    let migrated = start(MigratedEdit.self)
    let mutation = try #require(try await migrated.mutations.list().first)
    #expect((mutation.id.rawValue, mutation.mutation) == ("id", .rename("1", note: 0)))
    #expect(mutation.madeAt == record.madeAt)
    isOffline.value = false
    await migrated.retryNow()
    try await migrated.waitForPendingMutations()
    #expect(received.value == [#"a rename("1", note: 0)"#])
  }

  @Test func `Every number of a mutation of version 0.1.0 stays what it was`() throws {
    let numbers = [
      "0", "-1", "9223372036854775807", "18446744073709551615", "0.1", "123456789.123456789012345678", "1e300",
      "5e-324",
    ]
    let json = #"{"list":[\#(numbers.joined(separator: ","))],"text":"a\"","none":null,"yes":true}"#
    let text = try JSONDecoder().decode(JSONValue.self, from: Data(json.utf8)).text
    struct Decoded: Codable, Equatable {
      var list: [Double]
      var text: String
      var none: Int?
      var yes: Bool
    }
    let decode = { (text: String) in try JSONDecoder().decode(Decoded.self, from: Data(text.utf8)) }
    #expect(try decode(text) == decode(json))
    for number in numbers.prefix(6) { #expect(text.contains(number)) }
  }

  @Test(arguments: [#"7"#, #"{"format":99,"sequence":"x"}"#, #"{"sequence":1}"#])
  func `A record of an unknown form is held, and no mutation is sent before it is discarded`(_ json: String)
    async throws
  {
    let store = InMemoryStore(storage: storage)
    let value = try JSONDecoder().decode(JSONValue.self, from: Data(json.utf8))
    try await store.save(value, for: StoreKey("notes.mutations", id: "id"))
    isOffline.value = false
    let first = start(FirstEdit.self)
    let held = try #require(try await first.mutations.unreadable().first)
    #expect((held.id.rawValue, held.key, held.madeAt) == ("id", nil, nil))
    try await #expect(first.perform(.rename("1"), on: "a") == .queued)
    #expect(received.value.isEmpty)
    try await first.mutations.discard(held.id)
    try await first.waitForPendingMutations()
    #expect(received.value == [#"a rename("1")"#])
  }
}
