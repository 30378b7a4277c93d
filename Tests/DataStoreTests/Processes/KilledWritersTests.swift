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
    // The child processes have the numbers below `writerCount`, so this stamp is from none of them.
    let finalStamp = Stamp(writer: writerCount, number: 1)
    let reader = CommitReader(
      collection: "stamps", ids: ["0", "1", "2"], finalValue: finalStamp, order: StampOrder.self)
    try await reader.checkReads(of: place) { store in
      try await expectKillsLoseNoStamp(in: place)
      var batch = StoreBatch()
      for id in reader.ids { batch.save(reader.finalValue, for: reader.key(id)) }
      try await store.commit(batch)
    }
    #expect(try place.temporaryFiles == [])
  }

  private func expectKillsLoseNoStamp(in place: SharedPlace) async throws {
    var previous: Stamp?
    var nextNumbers = Array(repeating: 1, count: writerCount)
    for round in 1...killRoundCount {
      let lines = try await runAndKillWriters(in: place) { ["stamp", "\($0)", "\(nextNumbers[$0])"] }
      var acknowledged: [Stamp: (began: UInt64, ended: UInt64)] = [:]
      var inFlight: Set<Stamp> = []
      for writer in 0..<writerCount {
        for line in lines[writer] {
          let numbers = line.split(separator: " ").compactMap { UInt64($0) }
          try #require(
            numbers.count == 3 && numbers[0] == nextNumbers[writer], "round \(round), process \(writer): \(line)")
          acknowledged[Stamp(writer: writer, number: nextNumbers[writer])] = (began: numbers[1], ended: numbers[2])
          nextNumbers[writer] += 1
        }
        inFlight.insert(Stamp(writer: writer, number: nextNumbers[writer]))
        nextNumbers[writer] += 1
      }
      let store = try place.open()
      let found = try await store.observe(collection: "stamps", as: Stamp.self).stored.map(\.stored.value)
      try #require(found.isEmpty || found.count == 3 && Set(found).count == 1, "round \(round): \(found)")
      if let stamp = found.first, let times = acknowledged[stamp] {
        // A commit that began after the stored one was acknowledged would have replaced it.
        let later = acknowledged.filter { $0.value.began > times.ended }
        #expect(later.isEmpty, "round \(round): \(stamp), acknowledged before \(times.ended)")
      } else if found.first.map(inFlight.contains) != true {
        // No commit of this round is stored, so none was acknowledged.
        #expect(found.first == previous, "round \(round)")
        #expect(acknowledged.isEmpty, "round \(round): \(found)")
      }
      previous = found.first
    }
  }

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Kills lose no acknowledged increment if each one requires that the counter is unchanged since it was read`(
    kind: SharedPlace.Kind
  ) async throws {
    let place = try SharedPlace(kind)
    let reader = CommitReader(
      collection: "counters", ids: ["counter", "twin"], finalValue: .max, order: CountingOrder.self)
    try await reader.checkReads(of: place) { store in
      try await expectKillsLoseNoIncrement(in: place)
      var batch = StoreBatch()
      for id in reader.ids { batch.save(reader.finalValue, for: reader.key(id)) }
      try await store.commit(batch)
    }
    #expect(try place.temporaryFiles == [])
  }

  private func expectKillsLoseNoIncrement(in place: SharedPlace) async throws {
    var previous = 0
    for round in 1...killRoundCount {
      let linesOfWriters = try await runAndKillWriters(in: place) { _ in ["count-up"] }
      var acknowledged: Set<Int> = []
      for lines in linesOfWriters {
        let numbers = try lines.map { try #require(Int($0), "round \(round): \($0)") }
        #expect(numbers == numbers.sorted(), "round \(round)")
        let areUnique = numbers.allSatisfy { acknowledged.insert($0).inserted }
        #expect(areUnique, "round \(round): acknowledged twice, \(lines)")
      }
      let store = try place.open()
      let found = try await store.load(StoreKey<Int>("counters", id: "counter"))?.value ?? 0
      #expect(try await store.load(StoreKey<Int>("counters", id: "twin"))?.value ?? 0 == found)
      try #require(found >= previous, "round \(round): \(previous) became \(found)")
      let newNumbers = Set(previous..<found).map { $0 + 1 }
      #expect(acknowledged.isSubset(of: newNumbers), "round \(round): \(previous) became \(found)")
      // Each process had at most one increment in flight.
      #expect(newNumbers.count <= acknowledged.count + writerCount, "round \(round): \(previous) became \(found)")
      previous = found
    }
  }

  /// Runs a process for each writer, and kills one process after another at random instants.
  ///
  /// - Parameter command: Returns the command of a writer, followed by its arguments.
  /// - Returns: The lines that each process has printed.
  private func runAndKillWriters(in place: SharedPlace, _ command: (Int) -> [String]) async throws -> [[String]] {
    try Task.checkCancellation()
    var children: [ChildProcess] = []
    for writer in 0..<writerCount {
      let words = command(writer)
      children.append(try ChildProcess(words[0], place.url, Array(words.dropFirst())))
    }
    var lines = Array(repeating: [String](), count: writerCount)
    var livingWriters = Array(children.indices)
    while !livingWriters.isEmpty {
      // When one process has printed a line, the others are at arbitrary points of their commits.
      for _ in 0..<Int.random(in: 0...5) {
        let writer = livingWriters.randomElement()!
        if let line = await children[writer].line() { lines[writer].append(line) }
      }
      let writer = livingWriters.remove(at: .random(in: livingWriters.indices))
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
  let finalValue: Value
  let order: Order.Type

  func key(_ id: String) -> StoreKey<Value> { StoreKey(collection, id: id) }

  /// Checks reads of several kinds while `work` runs, until each kind has read the last commit.
  ///
  /// - Parameter work: A closure that ends by making the last commit with the store that it receives.
  func checkReads(
    of place: SharedPlace, during work: @escaping @Sendable (any KeyValueStore) async throws -> Void
  ) async throws {
    // Two stores are both observed and read, because a value that a load finds is sent to the store's observers too.
    let stores = [try place.open(), try place.open()]
    try await withThrowingTaskGroup { group in
      for store in stores {
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
    try check(Array(values.values), &order, from: "the values at the beginning")
    for await changes in observation.changes {
      for change in changes { values[change.key.id ?? ""] = change.stored?.value }
      try check(Array(values.values), &order, from: "the changes \(changes)")
      if values.values.first == finalValue { return }
    }
    try Task.checkCancellation()
    throw Failure(source: "the finished stream", values: Array(values.values), reason: "not of the last commit")
  }

  /// Loads one key after another, and checks that no load returns an older value than the load before it.
  private func loadAgainAndAgain(_ store: any KeyValueStore) async throws {
    var order = Order()
    while true {
      try Task.checkCancellation()
      var values: [Value?] = []
      for index in 0..<5 {
        values.append(try await store.load(key(ids[index % ids.count]))?.value)
        try check([values[index]].compactMap { $0 }, &order, from: "load \(index)", count: 1)
      }
      if values.last == finalValue { return }
    }
  }

  /// Reads the values of all keys as of one instant, checks them, and repeats this.
  private func observeAgainAndAgain(_ store: any KeyValueStore) async throws {
    var order = Order()
    while true {
      try Task.checkCancellation()
      let values = try await store.observe(collection: collection, as: Value.self).stored.map(\.stored.value)
      try check(values, &order, from: "observe")
      if values.first == finalValue { return }
    }
  }

  /// Throws unless all values are of the same commit, which isn't older than the one read before.
  private func check(_ values: [Value], _ order: inout Order, from source: String, count: Int? = nil) throws {
    guard values.isEmpty || values.count == count ?? ids.count && values.allSatisfy({ $0 == values[0] }) else {
      throw Failure(source: source, values: values, reason: "not of one commit")
    }
    guard order.record(values.first) else {
      throw Failure(source: source, values: values, reason: "older than the value read before; \(order)")
    }
  }

  private struct Failure: Error, CustomStringConvertible {
    /// What returned the values, such as a load or a change.
    let source: String
    let values: [Value]
    let reason: String

    var description: String { "Read from \(source): \(values), which is \(reason)." }
  }
}

/// Detects a read that returns an older value after a newer one.
private protocol ReadOrder: Sendable {
  associatedtype Value: Codable & Equatable & Sendable

  init()

  /// Records the next value that was read.
  ///
  /// `nil` means that nothing was stored. It is older than every value, because the tests remove no values.
  ///
  /// - Returns: Whether it is the same as the previous value, or newer.
  mutating func record(_ value: Value?) -> Bool
}

extension StampOrder: ReadOrder {}

private struct CountingOrder: ReadOrder {
  private var previous: Int?

  mutating func record(_ value: Int?) -> Bool {
    if let previous, value.map({ $0 < previous }) ?? true { return false }
    previous = value
    return true
  }
}
