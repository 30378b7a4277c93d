/// Receives the elements of sequences for an object without keeping the object alive.
///
/// A view model follows a stream in a method that the task of a view awaits. Such a method keeps its object alive for as long
/// as it waits for the next element, which may be for ever. So the method is `consuming`: it makes a subscriber of the
/// object, gives up its own reference, and awaits the subscriber.
package struct WeakSubscriber<Object: AnyObject & Sendable>: Sendable {
  /// The object; `nil` once it is released.
  package weak let object: Object?

  /// Creates a subscriber of an object.
  package init(_ object: Object) {
    self.object = object
  }

  /// Receives every element of a sequence, until the sequence ends or the next element finds the object released.
  ///
  /// An object that must end this with its release cancels its subscription in its `deinit`.
  ///
  /// - Parameters:
  ///   - elements: The sequence.
  ///   - receive: Called with the object and each element in order.
  @MainActor
  package func receive<Element>(
    _ elements: some AsyncSequence<Element, Never>, _ receive: @MainActor (Object, Element) -> Void
  ) async {
    for await element in elements {
      guard let object else { return }
      receive(object, element)
    }
  }
}
