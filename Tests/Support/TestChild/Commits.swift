internal import DataStore
internal import Foundation
internal import Synchronization
internal import TestSupport

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Commands that commit to a store in a process that may be killed at any time, and report each acknowledged commit.
extension TestChild {
  /// Makes the commits numbered from `first` to `last`, but stops at the first one that fails.
  static func commit(
    _ kind: NumberedCommits, from first: Int, to last: Int, in store: any KeyValueStore
  ) async {
    for number in first...last {
      do throws(StoreError) {
        try await kind.make(number, in: store)
      } catch {
        return say("refused \(error)")
      }
      say("\(number)")
    }
  }

  /// Makes numbered commits, but kills the process before the given call of the store's ``FileSystem``, counted from 1.
  ///
  /// SQLite's own system calls aren't counted. If the store makes fewer calls, all commits are made.
  static func dieAtCall(
    _ fatalCall: Int, committing kind: NumberedCommits, from first: Int, to last: Int, in place: URL
  ) async {
    let callCount = Atomic(0)
    let fileSystem = FileSystem { _ in
      if callCount.add(1, ordering: .relaxed).newValue == fatalCall { kill(getpid(), SIGKILL) }
      return nil
    }
    await commit(kind, from: first, to: last, in: open(place, fileSystem))
  }

  /// Commits stamps in a loop, each to three keys in one batch.
  ///
  /// Prints for each commit its number, and the times at which it began and was acknowledged.
  static func stamp(as writer: Int, from first: Int, in store: any KeyValueStore) async throws {
    for number in first... {
      let stamp = Stamp(writer: writer, number: number)
      var batch = StoreBatch()
      for id in 0..<3 { batch.save(stamp, for: StoreKey("stamps", id: "\(id)")) }
      let startTime = Stamp.now
      try await store.commit(batch)
      say("\(number) \(startTime) \(Stamp.now)")
    }
  }

  /// Increments a counter and its copy, the twin, in a loop, and prints each new number.
  ///
  /// Each commit requires that no other process has changed the counter since it was read. If the commit fails because
  /// of that, the counter is read again.
  static func countUp(in store: any KeyValueStore) async throws {
    let (counterKey, twinKey) = (StoreKey<Int>("counters", id: "counter"), StoreKey<Int>("counters", id: "twin"))
    while true {
      let stored = try await store.load(counterKey)
      let number = (stored?.value ?? 0) + 1
      var batch = StoreBatch()
      batch.require(stored?.tag, of: counterKey)
      batch.save(number, for: counterKey)
      batch.save(number, for: twinKey)
      do throws(StoreError) {
        try await store.commit(batch)
      } catch {
        guard case .preconditionFailed = error else { throw error }
        continue
      }
      say("\(number)")
    }
  }

  /// Commits five values, but pauses once all of them are staged, and continues when standard input ends.
  static func stage(in folder: URL) async throws {
    let stagedCount = Atomic(0)
    let fileSystem = FileSystem { call in
      switch call.operation {
      case "create": stagedCount.add(1, ordering: .relaxed)
      // This call locks the folder, not a staged file. After it, the store moves the staged files into place.
      case "flock" where !call.path.contains(".DataStore-") && stagedCount.load(ordering: .relaxed) >= 5:
        // Prevents a second pause.
        stagedCount.store(0, ordering: .relaxed)
        say("staged")
        while readLine() != nil {}
      default: break
      }
      return nil
    }
    await commit(.batches, from: 1, to: 1, in: open(folder, fileSystem))
  }
}
