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
  /// - **Start**: The first subscriber starts the one task that iterates this sequence. It is registered before the
  ///   task starts, so it gets the first element. The task has the priority and the task-local values of that
  ///   subscriber.
  /// - **Late subscribers** get the newest `replay` elements, then what follows.
  /// - **Pace**: The next element is asked for as soon as any subscriber could use it: always, but for subscribers that
  ///   would drop it (`dropNewest`) or fail because of it (`error`). While only such subscribers are there and their
  ///   buffers are full, this sequence is not asked.
  /// - **Cancellation**: A subscriber leaves by itself. When the last one leaves, the task is cancelled and the replay
  ///   goes; the next subscriber starts a new iteration, where this sequence can be iterated again.
  /// - **After the end**: The end, or the error, is passed on after the backlog. Late subscribers get the replay, then
  ///   the end or the error; nothing is started again.
  ///
  /// - Parameters:
  ///   - replay: How many of the newest elements a late subscriber gets first. At least 0, or the program stops with a
  ///     message.
  ///   - buffering: What a subscriber's buffer does while the subscriber is busy. There is no default: to drop, to fail
  ///     or to grow is a choice.
  public func multicast(replay: Int = 0, buffering: BufferingPolicy<Failure>) -> MulticastSequence<Self> {
    MulticastSequence(upstream: Upstream(self, replay: replay), policy: buffering)
  }
}

/// A sequence whose one iteration all subscribers share.
///
/// ``_Concurrency/AsyncSequence/multicast(replay:buffering:)`` makes it, and says what holds.
public struct MulticastSequence<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element: Sendable {
  /// What the base sequence yields.
  public typealias Element = Base.Element
  /// What the base sequence throws.
  public typealias Failure = Base.Failure

  let upstream: Upstream<Base>
  let policy: BufferingPolicy<Failure>

  /// The same sequence with this subscriber's own buffering.
  ///
  /// The iteration of the base is still shared.
  public func buffering(_ policy: BufferingPolicy<Failure>) -> MulticastSequence {
    MulticastSequence(upstream: upstream, policy: policy)
  }

  /// Subscribes, starts the iteration of the base if this is the first subscriber, and returns the iterator that reads.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(upstream: upstream, iterator: upstream.subscribe(policy))
  }

  /// Reads the shared iteration.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// Held, so that the iteration lasts as long as its subscribers.
    let upstream: Upstream<Base>
    @usableFromInline
    var iterator: MulticastSubscription<Element, Failure>.AsyncIterator

    /// Returns the next element, waiting for one if need be; nil at the end and for ever after.
    ///
    /// - Throws: What the base sequence throws, or the error of this subscriber's ``BufferingPolicy/error(_:_:)``
    ///   policy: once, after everything that was buffered.
    @inlinable
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> Element? {
      try await iterator.next(isolation: actor)
    }
  }
}
