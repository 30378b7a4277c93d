internal import Dispatch
internal import Foundation

/// The queue a `URLSession` calls its delegate on: in order, one call at a time, and few calls ahead.
///
/// On Linux a session adds a call for each part of a reply that it reads, and reads on whatever happens to the calls.
/// Without a bound a server that sends fast would fill the memory with parts that nobody has looked at; here the
/// session waits for its delegate before it reads more. The delegate must therefore never wait for the session.
final class HTTPDelegateQueue: OperationQueue, @unchecked Sendable {
  // The superclass is safe to share between threads, and so are the constants added here.

  /// The most calls that wait or run.
  static let maximumCallCount = 16

  private let freeSlots = DispatchSemaphore(value: maximumCallCount)
  /// A queue of its own always gets a thread, even while others block those of the global queues; it is held here
  /// because the superclass does not retain it.
  private let threadSource = DispatchQueue(label: "Moments.HTTPDelegateQueue")

  override init() {
    super.init()
    maxConcurrentOperationCount = 1
    underlyingQueue = threadSource
  }

  override func addOperation(_ block: @escaping @Sendable () -> Void) {
    freeSlots.wait()
    super.addOperation { [freeSlots] in
      block()
      freeSlots.signal()
    }
  }
}
