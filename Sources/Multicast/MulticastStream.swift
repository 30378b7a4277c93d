/// The receiving side of a channel: an asynchronous sequence that any number of tasks may iterate.
///
/// Each `makeAsyncIterator()`, so each `for await`, is a subscription of its own: it gets the channel's replay, then
/// every later element in the order of sending, then the end.
///
/// ```swift
/// for await message in messages.stream {
///   show(message)
/// }
/// ```
///
/// - **Ordering**: All subscribers see one order. Nothing arrives twice. An element is missing only where the
///   subscriber's ``BufferingPolicy`` dropped it, and is then counted in ``MulticastSubscription/droppedCount``.
/// - **Registration**: A subscription is in force when `makeAsyncIterator()` or ``subscribe()`` returns, and the replay
///   is taken in the same moment: nothing falls between the two.
/// - **Cancellation**: Cancelling the reading task makes its `next()` return nil promptly and unregisters the
///   subscription. Leaving the loop unregisters it at once.
/// - **After the end**: A late subscriber gets the replay, then the end or the error.
///
/// A stream never keeps its channel alive: when the channel is dropped, its streams finish.
public struct MulticastStream<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
  /// The iterator of one subscription.
  public typealias AsyncIterator = MulticastSubscription<Element, Failure>.AsyncIterator

  let core: ChannelCore<Element, Failure>
  /// What the buffer of a subscriber does while the subscriber is busy.
  package let policy: BufferingPolicy<Failure>

  /// Subscribes, and returns the iterator that reads.
  ///
  /// Takes constant time. A subscriber whose policy keeps the start of its backlog also copies the replay.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(reader: ChannelReader(core: core, policy: policy))
  }

  /// Subscribes now, to read later: what is sent from here on waits in the subscription's buffer.
  ///
  /// Takes constant time. A subscriber whose policy keeps the start of its backlog also copies the replay.
  public func subscribe() -> MulticastSubscription<Element, Failure> {
    MulticastSubscription(ChannelReader(core: core, policy: policy))
  }

  /// The same stream with this subscriber's own buffering instead of the channel's.
  public func buffering(_ policy: BufferingPolicy<Failure>) -> MulticastStream {
    MulticastStream(core: core, policy: policy)
  }
}
