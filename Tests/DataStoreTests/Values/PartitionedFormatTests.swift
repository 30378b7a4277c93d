import Foundation
import Multicast
import Testing

@testable import DataStore

/// The elements that are encoded when a ``PartitionedValue`` is saved.
@Suite(.serialized) struct PartitionedFormatTests {
  /// A number that counts the encodings of all such numbers.
  private struct CountingNumber: Codable, Equatable {
    /// Every test encodes some numbers with the default counter, which one test reads, so the suite is serialized.
    @TaskLocal static var encodingCounter = Counter()

    var number: Int

    init(_ number: Int) { self.number = number }

    init(from decoder: any Decoder) throws {
      number = try decoder.singleValueContainer().decode(Int.self)
    }

    func encode(to encoder: any Encoder) throws {
      Self.encodingCounter.count.withLock { $0 += 1 }
      var container = encoder.singleValueContainer()
      try container.encode(number)
    }
  }

  private final class Counter: Sendable {
    let count = Lock(0)
  }

  private struct Numbers: PartitionedValue {
    var head = "numbers"
    var elements: [CountingNumber]
  }

  private let format = makeValueFormat(of: Numbers.self)

  /// Encodes a second version for a save over a first one with 300 elements, and checks the parts.
  ///
  /// - Parameters:
  ///   - change: Changes the elements of the first version to those of the second one.
  ///   - corrupt: Returns the bytes to read in place of the stored bytes of a part.
  /// - Returns: The number of encoded elements, and the number of new parts.
  private func save(
    _ change: (inout [CountingNumber]) -> Void, corrupt: (Data?) -> Data? = { $0 }
  ) throws -> (encodedElementCount: Int, newPartCount: Int) {
    let first = Numbers(elements: (0..<300).map(CountingNumber.init))
    let stored = try format.encode(first, over: nil) { _ in nil }
    var parts = Dictionary(uniqueKeysWithValues: stored.newParts.map { ($0.id, $0.bytes) })
    var second = first
    change(&second.elements)
    let counter = Counter()
    let encoded = try CountingNumber.$encodingCounter.withValue(counter) {
      try format.encode(
        second, over: StoredParts(value: first, ids: stored.partIDs ?? [], counts: stored.counts)
      ) { corrupt(parts[$0]) }
    }
    for part in encoded.newParts { parts[part.id] = part.bytes }
    // Joined, the parts must be the elements of the second version, even where bytes were copied from stored parts.
    var elements: [CountingNumber] = []
    for id in encoded.partIDs ?? [] {
      elements += try JSONDecoder().decode([CountingNumber].self, from: #require(parts[id]))
      #expect(PartID.matches(id, try #require(parts[id])))
    }
    #expect(elements == second.elements)
    return (counter.count.withLock { $0 }, encoded.newParts.count)
  }

  @Test func `Only new and changed elements are encoded`() throws {
    // The 300 elements of the first version are in five chunks of 60, each stored as one part.
    #expect(try save { $0[150] = CountingNumber(-1) } == (1, 1))
    #expect(try save { $0.insert(CountingNumber(-1), at: 0) } == (1, 1))
    #expect(try save { $0.insert(contentsOf: [CountingNumber(-1), CountingNumber(-2)], at: 130) } == (2, 1))
    #expect(try save { $0.remove(at: 10) } == (0, 1))
    #expect(
      try save { ($0[3], $0[40], $0[299]) = (CountingNumber(-1), CountingNumber(-2), CountingNumber(-3)) } == (3, 2))
    #expect(try save { _ in } == (0, 0))
  }

  @Test func `A changed chunk whose stored bytes can't be used is encoded completely`() throws {
    #expect(try save({ $0[0] = CountingNumber(-1) }, corrupt: { _ in nil }) == (60, 1))
    // The corrupt bytes are still a JSON array of the same length, but with different numbers.
    let replaceOnes = { (bytes: Data?) in
      bytes.map { Data($0.map { $0 == UInt8(ascii: "1") ? UInt8(ascii: "2") : $0 }) }
    }
    #expect(try save({ $0[0] = CountingNumber(-1) }, corrupt: replaceOnes) == (60, 1))
  }

  @Test func `A store reads the stored part, and encodes only the element that changed`() async throws {
    let store = InMemoryStore()
    let key = StoreKey<Numbers>("numbers")
    var numbers = Numbers(elements: (0..<300).map(CountingNumber.init))
    try await store.save(numbers, for: key)
    // The store encodes on a queue of its own, where the task-local value has its default.
    let counter = CountingNumber.encodingCounter
    let countBefore = counter.count.withLock { $0 }
    numbers.elements[150] = CountingNumber(-1)
    try await store.save(numbers, for: key)
    #expect(counter.count.withLock { $0 } == countBefore + 1)
    #expect(try await store.load(key)?.value == numbers)
  }
}
