/// A holder of an object's current subscription, which cancels the subscription when another one replaces it.
///
/// An object that observes a stream through a ``WeakSubscriber`` holds its current subscription here. The subscription
/// is also cancelled when the object is released. A cancellation ends the loop that reads from the subscription.
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
