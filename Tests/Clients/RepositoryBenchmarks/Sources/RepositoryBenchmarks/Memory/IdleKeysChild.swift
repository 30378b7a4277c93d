internal import DataStore
internal import Foundation
internal import Repository

/// A measurement of the memory that idle keys take in one system, in a process that runs no other system.
///
/// An idle key was loaded once, or saved once if the system is the store alone, and isn't used afterwards. The process
/// runs this executable with `--child` and a description of the work, and prints its result as JSON.
struct IdleKeysChild: Codable, Sendable {
  enum System: String, CaseIterable, Codable, Sendable {
    case synced, evicting, byHand, store

    var label: String {
      switch self {
      case .synced: SyncedSystem.label
      case .evicting: "\(SyncedSystem.label), 1 MiB"
      case .byHand: HandWrittenRepository<Raise>.label
      case .store: "the store alone"
      }
    }
  }

  static let flag = "--child"

  /// The limit of the evicting system: 1 MiB, in bytes.
  private static let evictionLimit = 1 << 20

  /// The number of keys that are loaded or saved before the measurement, so that all code and all caches of a fixed
  /// size are in memory.
  private static let warmUpKeyCount = 200
  private static let loaderCount = 16

  let system: System
  let store: StoreKind
  let folder: URL
  let keys: Int

  /// Starts the process and returns its measurement.
  func run() throws -> MemoryGrowth {
    let arguments = [Self.flag, String(decoding: try JSONEncoder().encode(self), as: UTF8.self)]
    let process = Process()
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchmarkError.childFailed(arguments: arguments, status: process.terminationStatus)
    }
    return try JSONDecoder().decode(MemoryGrowth.self, from: data)
  }

  /// Performs the work in the process that ``run()`` started.
  static func perform(_ description: String) async throws {
    let child = try JSONDecoder().decode(Self.self, from: Data(description.utf8))
    print(String(decoding: try JSONEncoder().encode(try await child.measure()), as: UTF8.self))
  }

  private func measure() async throws -> MemoryGrowth {
    let place = try await Place.empty(store, in: folder)
    // Each value is created on request, so the server keeps none.
    let server = Server<Raise>(Counter.collection, .done) { key in
      Counter(text: String(repeating: key, count: 1_000 / key.utf8.count))
    }
    let keyValueStore = place.makeStore()
    switch system {
    case .synced:
      let repository = SyncedSystem(server, keyValueStore)
      return try await measureGrowth { try await repository.reload($0) }
    case .evicting:
      let repository = SyncedSystem(server, keyValueStore, EvictionPolicy(maximumBytes: Self.evictionLimit))
      let growth = try await measureGrowth { try await repository.reload($0) }
      let byteCount = try await repository.storedByteCount()
      guard byteCount <= Self.evictionLimit else {
        throw BenchmarkError.overEvictionLimit(system: system.label, bytes: byteCount, limit: Self.evictionLimit)
      }
      return growth
    case .byHand:
      let repository = HandWrittenRepository(server, keyValueStore)
      return try await measureGrowth { try await repository.reload($0) }
    case .store:
      return try await measureGrowth {
        try await keyValueStore.save(server.value(of: $0), for: StoreKey(server.collection, id: $0))
      }
    }
  }

  private func measureGrowth(
    _ loadKey: @escaping @Sendable (String) async throws -> Void
  ) async throws -> MemoryGrowth {
    try await loadAll((0..<Self.warmUpKeyCount).map { "warm-up-\($0)" }, loadKey)
    // The first reading may need memory itself.
    _ = try ResidentMemory.bytes()
    let before = try ResidentMemory.bytes()
    let duration = try await ContinuousClock().measure { try await loadAll((0..<keys).map { "\($0)" }, loadKey) }
    return MemoryGrowth(before: before, after: try ResidentMemory.bytes(), seconds: duration / .seconds(1))
  }

  /// Loads keys concurrently, so that several share a commit.
  private func loadAll(_ keys: [String], _ loadKey: @escaping @Sendable (String) async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for loader in 0..<Self.loaderCount {
        group.addTask {
          for index in stride(from: loader, to: keys.count, by: Self.loaderCount) { try await loadKey(keys[index]) }
        }
      }
      try await group.waitForAll()
    }
  }
}

/// The resident memory before and after a measurement, in bytes, and its duration.
struct MemoryGrowth: Codable, Sendable {
  let before: Int
  let after: Int
  let seconds: Double
}

/// The resident memory of this process.
enum ResidentMemory {
  /// Returns the current size in bytes, a multiple of the page size.
  static func bytes() throws(BenchmarkError) -> Int {
    guard
      let statm = FileManager.default.contents(atPath: "/proc/self/statm"),
      let pages = String(decoding: statm, as: UTF8.self).split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw .unreadableResidentMemory }
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }
}
