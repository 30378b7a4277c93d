extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Shares one iteration of this sequence among any number of subscribers.
  ///
  /// ```swift
  /// let quotes = socket.messages.multicast(replay: 1, buffering: .latest)
  /// // Two screens, one connection.
  /// async let list: Void = showList(quotes)
  /// async let chart: Void = showChart(quotes)
  /// ```
  ///
  /// - **Start**: The first subscriber starts the one task that iterates this sequence. The subscriber is registered
  ///   before the task starts, so it receives the first element. The task inherits the priority and the task-local
  ///   values of the subscribing task.
  /// - **Late subscribers**: A subscriber that registers after the start receives the newest `replay` elements, then
  ///   every later element.
  /// - **Demand**: The task requests the next element while at least one subscriber would keep it. It pauses while
  ///   every subscriber has a full buffer and a policy that would drop the element (`dropNewest`) or fail the
  ///   subscriber (`error`). A subscriber without capacity, which has the policy `error(0)` and no replay, requests an
  ///   element only while it is suspended in `next()`.
  /// - **Cancellation**: Cancelling one subscriber doesn't affect the others. If the last one leaves before this
  ///   sequence has ended, the task is cancelled and the replay is released. The next subscriber then starts a new
  ///   iteration, which requires a sequence that can be iterated more than once.
  /// - **Termination**: Subscribers read their backlog, then the completion or the error of this sequence. A subscriber
  ///   that registers afterwards receives the replay, then the completion or the error. It doesn't start a new
  ///   iteration.
  ///
  /// - Parameters:
  ///   - replay: The number of newest elements that a late subscriber receives first, which must be at least 0.
  ///   - buffering: The policy of each subscriber's buffer. It has no default, because the use of the elements decides
  ///     whether a full buffer should drop them, fail its subscriber, or grow.
  public func multicast(replay: Int = 0, buffering: BufferingPolicy<Failure>) -> MulticastSequence<Self> {
    MulticastSequence(upstream: Upstream(self, replay: replay), policy: buffering)
  }
}

/// A sequence whose subscribers share one iteration of a base sequence.
///
/// ``_Concurrency/AsyncSequence/multicast(replay:buffering:)`` creates it and documents its behavior.
public struct MulticastSequence<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element: Sendable {
  /// The element type of the base sequence.
  public typealias Element = Base.Element
  /// The error type of the base sequence.
  public typealias Failure = Base.Failure

  let upstream: Upstream<Base>
  let policy: BufferingPolicy<Failure>

  /// Returns a sequence that shares the same iteration, and whose subscribers use `policy`.
  public func buffering(_ policy: BufferingPolicy<Failure>) -> MulticastSequence {
    MulticastSequence(upstream: upstream, policy: policy)
  }

  /// Registers a subscriber, starts an iteration of the base sequence if there is none, and returns the subscriber's
  /// iterator.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(upstream: upstream, iterator: upstream.subscribe(policy))
  }

  /// An iterator that reads the elements of one subscriber.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// Keeps the shared iteration alive for as long as it has subscribers.
    let upstream: Upstream<Base>
    @usableFromInline
    var iterator: MulticastSubscription<Element, Failure>.AsyncIterator

    /// Returns the next element, or `nil` once the base sequence or the subscription has ended.
    ///
    /// Suspends until an element is available.
    ///
    /// - Throws: The base sequence's error, or the error of this subscriber's ``BufferingPolicy/error(_:_:)`` policy.
    ///   Either is thrown once, after all buffered elements.
    @inlinable
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> Element? {
      try await iterator.next(isolation: actor)
    }
  }
}
