/// A suspended call of `next()`.
struct Waiter: Sendable {
  /// Why a suspended call goes on.
  enum Wake {
    /// The element is in `target`.
    case element
    /// There is something to find by reading again.
    case readable
  }

  let continuation: UnsafeContinuation<Wake, Never>
  /// Uninitialised memory for one element, which belongs to the sender from when the waiter is taken until it resumes.
  ///
  /// As an address, because the waiter's size and type must not depend on the element's.
  private let target: Int

  init<Element>(_ continuation: UnsafeContinuation<Wake, Never>, target: UnsafeMutablePointer<Element>) {
    self.continuation = continuation
    self.target = Int(bitPattern: target)
  }

  /// Hands an element over.
  ///
  /// It must be of the type that `target` is for.
  func resume<Element>(with element: Element, order: borrowing SanitizerOrder) {
    UnsafeMutablePointer<Element>(bitPattern: target)!.initialize(to: element)
    order.release()
    continuation.resume(returning: .element)
  }

  func resume() {
    continuation.resume(returning: .readable)
  }
}
