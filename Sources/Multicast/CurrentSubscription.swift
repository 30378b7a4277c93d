/// The subscription of an object's current run; a new run replaces it.
///
/// An object that observes a stream through a ``WeakSubscriber`` holds its current subscription here. The subscription is
/// cancelled when the next one replaces it, and when the object is released. Either ends the run that reads from it.
@MainActor
package final class CurrentSubscription<Element: Sendable> {
  private var subscription: MulticastSubscription<Element, Never>?

  /// Creates an object without a subscription.
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
