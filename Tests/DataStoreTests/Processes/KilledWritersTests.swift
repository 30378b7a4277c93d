import DataStore
import Foundation
import Multicast
import TestSupport
import Testing

/// Several processes commit to the same keys and are killed at any instant, while this process reads continuously.
@Suite(.timeLimit(.minutes(15))) struct KilledWritersTests {
  private let writerCount = 4

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Kills lose no acknowledged commit, and no read returns a part of a commit or goes back to an older one`(
    kind: SharedPlace.Kind
  ) async throws {
    let place = try SharedPlace(kind)
    let reader = CommitReader(
      collection: "stamps", ids: ["0", "1", "2"], last: Stamp(writer: writerCount, number: 1), order: StampOrder.self)
    try await reader.read(place) { store in
      try await killStampingWriters(place)
      var batch = StoreBatch()
      for id in reader.ids { batch.save(reader.last, for: reader.key(id)) }
      try await store.commit(batch)
    }
    #expect(try place.temporaryFiles == [])
  }

  private func killStampingWriters(_ place: SharedPlace) async throws {
    var last: Stamp?
    var next = Array(repeating: 1, count: writerCount)
    for round in 1...killRounds {
      let lines = try await linesOfKilledWriters(place) { ["stamp", "\($0)", "\(next[$0])"] }
      var acknowledged: [Stamp: (began: UInt64, ended: UInt64)] = [:]
      var inFlight: Set<Stamp> = []
      for writer in 0..<writerCount {
        for line in lines[writer] {
          let words = line.split(separator: " ").compactMap { UInt64($0) }
          try #require(words.count == 3 && words[0] == next[writer], "round \(round), process \(writer): \(line)")
          acknowledged[Stamp(writer: writer, number: next[writer])] = (began: words[1], ended: words[2])
          next[writer] += 1
        }
        inFlight.insert(Stamp(writer: writer, number: next[writer]))
        next[writer] += 1
      }
      let store = try place.open()
      let found = try await store.observe(collection: "stamps", as: Stamp.self).stored.map(\.stored.value)
      try #require(found.isEmpty || found.count == 3 && Set(found).count == 1, "round \(round): \(found)")
      if let stamp = found.first, let times = acknowledged[stamp] {
        // A commit that began after the stored one was acknowledged would have replaced it.
        let later = acknowledged.filter { $0.value.began > times.ended }
        #expect(later.isEmpty, "round \(round): \(stamp), acknowledged by \(times.ended)")
      } else if found.first.map(inFlight.contains) != true {
        #expect(found.first == last, "round \(round)")
        #expect(acknowledged.isEmpty, "round \(round): \(found)")
      }
      last = found.first
    }
  }

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Killing processes that increment a number with preconditions loses no acknowledged increment`(
    kind: SharedPlace.Kind
  ) async throws {
    let place = try SharedPlace(kind)
    let reader = CommitReader(collection: "counters", ids: ["counter", "twin"], last: .max, order: CountingOrder.self)
    try await reader.read(place) { store in
      try await killCountingWriters(place)
      var batch = StoreBatch()
      for id in reader.ids { batch.save(reader.last, for: reader.key(id)) }
      try await store.commit(batch)
    }
    #expect(try place.temporaryFiles == [])
  }

  private func killCountingWriters(_ place: SharedPlace) async throws {
    var last = 0
    for round in 1...killRounds {
      let lines = try await linesOfKilledWriters(place) { _ in ["count-up"] }
      var acknowledged: Set<Int> = []
      for lines in lines {
        let numbers = try lines.map { try #require(Int($0), "round \(round): \($0)") }
        #expect(numbers == numbers.sorted(), "round \(round)")
        let isNew = numbers.allSatisfy { acknowledged.insert($0).inserted }
        #expect(isNew, "round \(round): acknowledged twice, \(lines)")
      }
      let store = try place.open()
      let found = try await store.load(StoreKey<Int>("counters", id: "counter"))?.value ?? 0
      #expect(try await store.load(StoreKey<Int>("counters", id: "twin"))?.value ?? 0 == found)
      let incremented = Set(last..<found).map { $0 + 1 }
      #expect(acknowledged.isSubset(of: incremented), "round \(round): \(last) became \(found)")
      // Each process had at most one increment in flight.
      #expect(incremented.count <= acknowledged.count + writerCount, "round \(round): \(last) became \(found)")
      last = found
    }
  }

  /// Runs a process for each writer, and kills them one after another at random instants.
  ///
  /// - Returns: The output of each process.
  private func linesOfKilledWriters(_ place: SharedPlace, _ words: (Int) -> [String]) async throws -> [[String]] {
    try Task.checkCancellation()
    var children: [ChildProcess] = []
    for writer in 0..<writerCount {
      let words = words(writer)
      children.append(try ChildProcess(words[0], place.url, Array(words.dropFirst())))
    }
    var lines = Array(repeating: [String](), count: writerCount)
    var alive = Array(children.indices)
    while !alive.isEmpty {
      // When one process has printed a line, the others are at arbitrary points of their commits.
      for _ in 0..<Int.random(in: 0...5) {
        let writer = alive.randomElement()!
        if let line = await children[writer].line() { lines[writer].append(line) }
      }
      let writer = alive.remove(at: .random(in: alive.indices))
      children[writer].kill()
      lines[writer] += await children[writer].allLines()
      #expect(await children[writer].end() == .killed, "\(lines[writer])")
    }
    for child in children { try place.waitForEffects(of: child) }
    return lines
  }
}

/// Loads and observes a few keys; each commit saves one value under all of them.
private struct CommitReader<Order: ReadOrder>: Sendable {
  typealias Value = Order.Value

  let collection: String
  let ids: [String]
  /// The value that the last commit saves.
  let last: Value
  let order: Order.Type

  func key(_ id: String) -> StoreKey<Value> { StoreKey(collection, id: id) }

  /// Reads until the last commit, while `work` runs.
  ///
  /// - Parameter work: A closure that ends by making the last commit with the store that it receives.
  func read(
    _ place: SharedPlace, while work: @escaping @Sendable (any KeyValueStore) async throws -> Void
  ) async throws {
    // Two stores are both observed and read, because a value that a load finds is sent to the store's observers too.
    let observed = try place.open()
    try await withThrowingTaskGroup { group in
      for store in [observed, try place.open()] {
        group.addTask { try await observeChanges(store) }
        group.addTask { try await loadAgainAndAgain(store) }
      }
      group.addTask { try await observeChanges(place.open()) }
      group.addTask { try await observeAgainAndAgain(place.open()) }
      group.addTask { try await work(place.open()) }
      try await group.waitForAll()
    }
  }

  /// Applies every change to the values with which the observation begins, and checks each result.
  private func observeChanges(_ store: any KeyValueStore) async throws {
    let observation = try await store.observe(collection: collection, as: Value.self)
    var values: [String: Value] = [:]
    for entry in observation.stored { values[entry.key.id ?? ""] = entry.stored.value }
    var order = Order()
    try check(Array(values.values), &order, by: "the values at the beginning")
    for await changes in observation.changes {
      for change in changes { values[change.key.id ?? ""] = change.stored?.value }
      try check(Array(values.values), &order, by: "the changes \(changes)")
      if values.values.first == last { return }
    }
    try Task.checkCancellation()
    throw Failure(reader: "the finished stream", values: Array(values.values), reason: "not of the last commit")
  }

  /// Loads one key after another, and checks that no load returns an older value than the load before it.
  private func loadAgainAndAgain(_ store: any KeyValueStore) async throws {
    var order = Order()
    while true {
      try Task.checkCancellation()
      var values: [Value?] = []
      for index in 0..<5 {
        values.append(try await store.load(key(ids[index % ids.count]))?.value)
        try check([values[index]].compactMap { $0 }, &order, by: "load \(index)", count: 1)
      }
      if values.last == last { return }
    }
  }

  /// Reads the values of all keys as of one instant, checks them, and repeats this.
  private func observeAgainAndAgain(_ store: any KeyValueStore) async throws {
    var order = Order()
    while true {
      try Task.checkCancellation()
      let values = try await store.observe(collection: collection, as: Value.self).stored.map(\.stored.value)
      try check(values, &order, by: "observe")
      if values.first == last { return }
    }
  }

  /// Throws unless all values are of the same commit, which isn't older than the last one read.
  private func check(_ values: [Value], _ order: inout Order, by reader: String, count: Int? = nil) throws {
    guard values.isEmpty || values.count == count ?? ids.count && values.allSatisfy({ $0 == values[0] }) else {
      throw Failure(reader: reader, values: values, reason: "not of one commit")
    }
    guard order.record(values.first) else {
      throw Failure(reader: reader, values: values, reason: "older than the value read before; \(order)")
    }
  }

  private struct Failure: Error, CustomStringConvertible {
    let reader: String
    let values: [Value]
    let reason: String

    var description: String { "Read by \(reader): \(values), which is \(reason)." }
  }
}

/// The order of values, which detects that an older value is read after a newer one.
private protocol ReadOrder: Sendable {
  associatedtype Value: Codable & Equatable & Sendable

  init()

  /// Records the next value that was read.
  ///
  /// - Returns: Whether it is the same as the previous value, or newer.
  mutating func record(_ value: Value?) -> Bool
}

extension StampOrder: ReadOrder {}

private struct CountingOrder: ReadOrder {
  private var last: Int?

  mutating func record(_ value: Int?) -> Bool {
    defer { last = value }
    return last.map { last in value.map { $0 >= last } ?? false } ?? true
  }
}
