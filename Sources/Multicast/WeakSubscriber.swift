/// A subscriber that receives elements on behalf of an object without keeping the object alive.
///
/// A view model observes a stream in a method that a view's task awaits. An ordinary method would keep its object alive
/// for as long as the method waits for the next element, which may be indefinitely. The method is therefore
/// `consuming`: it passes its own reference to a weak subscriber, which keeps only a weak one, and awaits the
/// subscriber.
package struct WeakSubscriber<Object: AnyObject & Sendable>: Sendable {
  /// The object, or `nil` once it has been released.
  package weak let object: Object?

  /// Creates a subscriber that receives elements on behalf of `object`, and consumes the caller's reference to
  /// `object`.
  package init(_ object: consuming Object) {
    self.object = object
  }

  /// Receives every element of a sequence, until the sequence ends or an element arrives after the object was released.
  ///
  /// Releasing the object doesn't end a wait for the next element. To end the wait too, hold the subscription in a
  /// ``CurrentSubscription`` of the object.
  ///
  /// - Parameters:
  ///   - elements: The sequence to iterate.
  ///   - handle: A closure that is called with the object and each element, in order.
  @MainActor
  package func receive<Element>(
    _ elements: some AsyncSequence<Element, Never>, _ handle: @MainActor (Object, Element) -> Void
  ) async {
    for await element in elements {
      guard let object else { return }
      handle(object, element)
    }
  }
}
