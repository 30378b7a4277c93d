internal import Dispatch

/// Work that would keep a thread of Swift concurrency busy for long.
///
/// There are as many of those threads as cores. Reading a response of 8 MiB takes a quarter of a second, so a few of
/// them at once, from servers that choose their size, would hold up every task of the process.
enum LongWork {
  /// From how many bytes on a response is read by ``run(_:)``.
  static let threshold = 64 * 1024

  /// Runs `work` on a thread of its own, and waits for it without a thread.
  ///
  /// Cancellation doesn't end the work.
  static func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      // A serial queue gets a thread of its own; a concurrent one would share those of the tasks.
      DispatchQueue(label: "GraphQLClient.LongWork").async { continuation.resume(returning: work()) }
    }
  }
}
