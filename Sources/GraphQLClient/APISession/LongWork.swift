internal import Dispatch

/// Runs synchronous work that would occupy a thread of Swift concurrency for too long.
///
/// Swift concurrency has one thread per core. Decoding a response of 8 MiB takes a quarter of a second, and the server
/// chooses the size. A few such responses at once would block every task of the process.
enum LongWork {
  /// The minimum size, in bytes, of a response that is decoded by ``run(_:)``.
  static let threshold = 64 * 1024

  /// Runs `work` on a separate thread, and suspends the calling task until the work is done.
  ///
  /// Cancellation doesn't stop the work.
  static func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      // A serial queue gets its own thread; a concurrent queue would share the threads of Swift concurrency.
      DispatchQueue(label: "GraphQLClient.LongWork").async { continuation.resume(returning: work()) }
    }
  }
}
