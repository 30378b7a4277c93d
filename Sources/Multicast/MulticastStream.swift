/// The receiving side of a channel: an asynchronous sequence that any number of tasks may iterate.
///
/// Each call of `makeAsyncIterator()`, and therefore each `for await` loop, creates a subscription of its own. It
/// receives the channel's replay, then every later element in the order of sending, then the completion or the error.
///
/// ```swift
/// for await message in messages.stream {
///   show(message)
/// }
/// ```
///
/// - **Ordering**: All subscribers observe the same order, and no element arrives twice. An element that was sent while
///   a subscriber was registered is missing only if the subscriber's ``BufferingPolicy`` dropped it or the subscriber
///   was cancelled before reading it. Missing elements are counted in ``MulticastSubscription/droppedCount``.
/// - **Registration**: A subscription is registered when `makeAsyncIterator()` or ``subscribe()`` returns. The replay
///   is taken in the critical section of the registration, so no element is lost or duplicated between the replay and
///   later elements.
/// - **Cancellation**: Cancelling a task that is suspended in `next()` unregisters the subscription at once. The
///   pending `next()` returns `nil` promptly, unless an element was already handed off to it. Cancelling a task that is
///   busy unregisters the subscription at the task's next call of `next()`. Leaving the loop unregisters it at once.
/// - **After termination**: A late subscriber receives the replay, then the completion or the error.
///
/// A stream never keeps a channel or relay object alive: when such an object is released, its streams finish.
public struct MulticastStream<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
  /// The iterator of one subscription.
  public typealias AsyncIterator = MulticastSubscription<Element, Failure>.AsyncIterator

  let core: ChannelCore<Element, Failure>
  /// The policy of each subscriber's buffer.
  package let policy: BufferingPolicy<Failure>

  /// Registers a subscriber, and returns the iterator that reads its elements.
  ///
  /// - Complexity: O(1), or O(*r*) if the policy keeps the oldest elements, where *r* is the number of replayed
  ///   elements.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(subscriber: ChannelSubscriber(core: core, policy: policy))
  }

  /// Registers a subscriber now, so that its elements can be read later.
  ///
  /// The subscription buffers the replay and every later element, as far as the policy keeps them, until a task reads
  /// them.
  ///
  /// - Complexity: O(1), or O(*r*) if the policy keeps the oldest elements, where *r* is the number of replayed
  ///   elements.
  public func subscribe() -> MulticastSubscription<Element, Failure> {
    MulticastSubscription(ChannelSubscriber(core: core, policy: policy))
  }

  /// Returns a copy of this stream that gives its subscribers the buffering policy `policy`.
  public func buffering(_ policy: BufferingPolicy<Failure>) -> MulticastStream {
    MulticastStream(core: core, policy: policy)
  }
}
