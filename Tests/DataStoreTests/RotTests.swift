import DataStore
import Foundation
import Multicast
import MulticastTesting
import TestRounds
import TestSupport
import Testing

/// Bit rot in the files of a store: truncation and flipped bits.
@Suite struct RotTests {
  private struct Page: Codable, Hashable {
    var title: String
    var isLiked: Bool
    var numbers: [Double]
  }

  private let temporary = TemporaryFolder(inMemory: true)
  private let key = StoreKey<Page>("page", id: "0")
  private let pages = [
    Page(title: "", isLiked: false, numbers: []),
    Page(title: "名字 \u{1F389} \"\n\u{0}", isLiked: true, numbers: [0.1, 1e300, -7]),
    Page(title: String(repeating: "long ", count: 200), isLiked: true, numbers: (0..<100).map { Double($0) / 7 }),
  ]

  @Test func `A file with bit rot is quarantined, reported once, and does not prevent the next save`() async throws {
    let roundCount = Rounds.count(30, full: 2_000)
    let seed = Rounds.fixedSeed ?? .random(in: .min ... .max)
    var random = SplitMix64(seed: seed)
    let file = temporary.url.appending(path: "\(try key.keyName.encoded()).value")
    var originals: [Data] = []
    for page in pages {
      try await FileStore(folder: temporary.url).save(page, for: key)
      originals.append(try Data(contentsOf: file))
    }
    for round in 1...roundCount {
      let rotten = rot(originals.randomElement(using: &random)!, using: &random)
      try rotten.write(to: file)
      do {
        try await checkSave(replacing: rotten, round: round)
      } catch {
        throw Failure(seed: seed, round: round, bytes: rotten, cause: error)
      }
    }
  }

  private func checkSave(replacing rotten: Data, round: Int) async throws {
    var store: FileStore? = FileStore(folder: temporary.url)
    let events = store!.events.subscribe()
    // In every second round, `changes(of:)` quarantines the rotten bytes, so the first change that the subscriber
    // receives is the save. In the other rounds, the save quarantines them.
    let observer = round.isMultiple(of: 2) ? try await store!.changes(of: key).subscribe() : nil
    let page = Page(title: "\(round)", isLiked: true, numbers: [])
    let saved = try await store!.save(page, for: key)
    if let observer {
      guard await observer.first(1) == [.saved(key, saved)] else { throw Problem.savedValueNotSeen }
    }
    guard try await store!.load(key) == saved else { throw Problem.savedValueNotSeen }
    store = nil
    var quarantinePaths: [String] = []
    for await event in events {
      guard case .valueQuarantined(key.keyName, let movedTo, _) = event else { throw Problem.unexpectedEvent(event) }
      quarantinePaths.append(movedTo)
    }
    guard quarantinePaths.count == 1 else { throw Problem.notOneQuarantine(quarantinePaths) }
    guard try Data(contentsOf: URL(filePath: quarantinePaths[0])) == rotten else {
      throw Problem.quarantineChangedBytes
    }
    try FileManager.default.removeItem(atPath: quarantinePaths[0])
  }

  /// Returns bytes that differ from `bytes` in at least one bit.
  private func rot(_ bytes: Data, using random: inout SplitMix64) -> Data {
    if UInt8.random(in: 0..<4, using: &random) == 0 {
      return bytes.prefix(Int.random(in: 0..<bytes.count, using: &random))
    }
    var rotten = bytes
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      rotten[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    }
    return rotten == bytes ? bytes.dropLast() : rotten
  }

  private enum Problem: Error {
    case savedValueNotSeen
    case unexpectedEvent(StoreEvent)
    case notOneQuarantine([String])
    case quarantineChangedBytes
  }

  /// A failure, with the information to reproduce it.
  private struct Failure: Error, CustomStringConvertible {
    let seed: UInt64
    let round: Int
    let bytes: Data
    let cause: any Error

    var description: String {
      "\(cause) in round \(round) of MOMENTS_SEED=\(seed), with the bytes \(String(decoding: bytes, as: UTF8.self))"
    }
  }
}
