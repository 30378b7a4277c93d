/// A holder that keeps an object's current subscription, and cancels the subscription when another one replaces it.
///
/// An object that observes a stream through a ``WeakSubscriber`` holds its current subscription here. Releasing the
/// object releases the holder, which also cancels the subscription. A cancellation ends the loop that reads from the
/// subscription.
@MainActor
package final class CurrentSubscription<Element: Sendable> {
  private var subscription: MulticastSubscription<Element, Never>?

  /// Creates a holder without a subscription.
  package nonisolated init() {}

  deinit {
    subscription?.cancel()
  }

  /// Cancels the current subscription, if any, and replaces it.
  ///
  /// - Returns: The new subscription.
  @discardableResult
  package func replace(with next: MulticastSubscription<Element, Never>) -> MulticastSubscription<Element, Never> {
    subscription?.cancel()
    subscription = next
    return next
  }
}
