#if canImport(FoundationNetworking)
  internal import Foundation

  /// A delegate queue that runs each operation synchronously on the thread that adds it.
  ///
  /// On Linux a session adds an operation for each part of a response that it reads, and continues to read whether or
  /// not the operations have run. A fast server could therefore fill the memory with pending parts. Running each
  /// operation synchronously handles a part before the session reads the next one.
  ///
  /// The operations run on the queue that all sessions of a process share. A delegate must therefore not block. It must
  /// not call a session either, because such a call would wait for the same queue.
  final class InlineDelegateQueue: OperationQueue, @unchecked Sendable {
    // Sendable because the superclass is thread-safe and this class adds no state.

    override func addOperation(_ block: @escaping @Sendable () -> Void) {
      block()
    }
  }
#endif
