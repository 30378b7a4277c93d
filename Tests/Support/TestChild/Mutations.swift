internal import DataStore
internal import Foundation
internal import Multicast
internal import Repository
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A queue of numbers, sent to whoever reads the standard output, by a process that may be killed at any instant.
extension TestChild {
  private struct Refused: Error {}

  private typealias Queue = MutationQueue<Int, Void, Refused>

  /// Enqueues four mutations, cancels the last, and sends the others, the second of which is refused; but kills the
  /// process in the place of one of its calls of the file system.
  static func queueMutations(dyingAtCall fatal: Int, in folder: URL) async throws {
    let count = Atomic(0)
    let fileSystem = FileSystem { _ in
      if count.add(1, ordering: .relaxed).newValue == fatal { kill(getpid(), SIGKILL) }
      return nil
    }
    let queue = queue(on: FileStore(folder: folder, fileSystem: fileSystem))
    for number in 1...4 {
      let ticket = try await queue.enqueue(number, orderingKey: "a")
      say("queued \(number) \(ticket.id)")
      if number == 4 {
        try await queue.cancel(ticket.id)
        say("cancelled 4 \(ticket.id)")
      }
    }
    try await send(queue)
  }

  /// Sends what another process left.
  static func sendMutations(in folder: URL) async throws {
    try await send(queue(on: FileStore(folder: folder)))
  }

  private static func queue(on store: FileStore) -> Queue {
    Queue(store: store, name: "mutations") { number, key in
      say("sent \(number) \(key)")
      return number == 2 ? .refused(Refused()) : .delivered(())
    }
  }

  private static func send(_ queue: Queue) async throws {
    let run = Task { try await queue.run() }
    for await snapshot in queue.snapshots where snapshot.isLoaded && snapshot.waitingCount == 0 { break }
    run.cancel()
    try await run.value
    say("done")
  }
}
