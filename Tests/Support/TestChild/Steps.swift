internal import DataStore
internal import Foundation
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Numbered changes to a store, each reported when it is acknowledged, by a process that may be killed at any instant.
extension TestChild {
  /// Takes steps, but kills the process in place of one of its calls of the file system.
  static func dieAtCall(_ fatal: Int, takingStepsFrom first: Int, to last: Int, in place: URL) async throws {
    let count = Atomic(0)
    let fileSystem = FileSystem { _ in
      if count.add(1, ordering: .relaxed).newValue == fatal { kill(getpid(), SIGKILL) }
      return nil
    }
    #if SQLite
      if place.pathExtension == "sqlite" {
        let store = SQLiteStore(file: place, busyTimeout: .seconds(60), fileSystem: fileSystem)
        return try await takeSteps(from: first, to: last, in: store)
      }
    #endif
    try await takeSteps(from: first, to: last, in: FileStore(folder: place, fileSystem: fileSystem))
  }

  /// Takes steps until the last one, or until it is killed.
  static func takeSteps(from first: Int, to last: Int, in store: any KeyValueStore) async throws {
    for number in first...last {
      let key = StoreKey<[Int]>("steps", id: "\(number % 3)")
      if number % 7 == 0 {
        try await store.remove(key)
      } else {
        try await store.save(Array(repeating: number, count: 500), for: key)
      }
      say("\(number)")
    }
  }
}
