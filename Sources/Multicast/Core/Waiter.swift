/// A suspended call of `next()`.
struct Waiter: Sendable {
  /// The reason for resuming a suspended call.
  enum WakeReason {
    /// An element was handed off and is in `target`.
    case element
    /// The call should read again: an element or the termination is available, or the subscriber was cancelled.
    case readable
  }

  let continuation: UnsafeContinuation<WakeReason, Never>
  /// The address of uninitialized memory for one element.
  ///
  /// Once a sender has taken the waiter, the memory belongs to the sender until it resumes the call. The address is
  /// stored as an integer, so that the waiter's type doesn't depend on the element's type.
  private let target: Int

  init<Element>(_ continuation: UnsafeContinuation<WakeReason, Never>, target: UnsafeMutablePointer<Element>) {
    self.continuation = continuation
    self.target = Int(bitPattern: target)
  }

  /// Hands an element off to the suspended call, and resumes it.
  ///
  /// - Precondition: `Element` is the type that the waiter was created with.
  func resume<Element>(with element: Element, order: borrowing SanitizerOrder) {
    UnsafeMutablePointer<Element>(bitPattern: target)!.initialize(to: element)
    order.release()
    continuation.resume(returning: .element)
  }

  /// Resumes the suspended call, which then reads again.
  func resume() {
    continuation.resume(returning: .readable)
  }
}
