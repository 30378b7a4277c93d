#if canImport(FoundationNetworking)
  internal import Foundation

  /// A delegate queue that runs each call where the session makes it.
  ///
  /// On Linux a session adds a call for each part of a response that it reads, and reads on whatever happens to the
  /// calls, so a server that sends fast would fill the memory with parts that wait. Run in place, each part is handled
  /// before the next one is read.
  ///
  /// The session calls on the queue that all sessions of a process share. So a delegate must neither wait nor call back
  /// into a session, which would wait for that queue.
  final class InlineDelegateQueue: OperationQueue, @unchecked Sendable {
    // The superclass is safe to share between threads, and this class adds no state.

    override func addOperation(_ block: @escaping @Sendable () -> Void) {
      block()
    }
  }
#endif
