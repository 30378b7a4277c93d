/// A registered subscriber of a channel.
///
/// ``MulticastStream/subscribe()`` creates a subscription. It receives elements from then on, even if no task iterates
/// it yet. Its iterators share it: each element goes to one of them, first come, first served. To deliver all elements
/// to each of several loops, iterate the ``MulticastStream`` instead.
///
/// - **Cancellation**: The subscription ends for all its iterators when ``cancel()`` is called, when a task that is
///   suspended in `next()` is cancelled, or when a cancelled task calls `next()`. Its backlog is then released. An
///   element that was already handed off to a call of `next()` is still returned.
/// - **Lifetime**: Releasing the subscription and its last iterator unregisters the subscriber at once.
public final class MulticastSubscription<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
  private let subscriber: ChannelSubscriber<Element, Failure>

  init(_ subscriber: ChannelSubscriber<Element, Failure>) {
    self.subscriber = subscriber
  }

  /// The number of elements that this subscription will never return, because its policy dropped them or because it was
  /// cancelled before they were read.
  ///
  /// The count is exact at all times: the elements received, dropped and still buffered add up to the elements replayed
  /// to the subscription and sent while it was registered. Elements that a call of `next()` has fetched in advance
  /// count as buffered until later calls return them. If ``cancel()`` runs during a call of `next()`, they count as
  /// buffered until they are discarded, at the latest shortly after `next()` returns.
  public var droppedCount: Int { subscriber.droppedCount }

  /// Ends this subscription and releases the backlog.
  ///
  /// Every later call of `next()` returns `nil`. A pending one does too, unless an element was already handed off to
  /// it.
  public func cancel() {
    subscriber.cancel()
  }

  /// Returns an iterator over the elements that this subscription has not delivered yet.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(subscriber: subscriber)
  }

  /// An iterator that reads the elements of one subscription.
  public struct AsyncIterator: AsyncIteratorProtocol {
    @usableFromInline
    let subscriber: ChannelSubscriber<Element, Failure>

    init(subscriber: ChannelSubscriber<Element, Failure>) {
      self.subscriber = subscriber
    }

    /// Returns the next element, or `nil` once the subscription has ended.
    ///
    /// Suspends until an element is available. Runs on the caller's isolation.
    ///
    /// - Throws: The channel's failure, or the error of this subscriber's ``BufferingPolicy/error(_:_:)`` policy.
    ///   Either is thrown once, after all buffered elements.
    @inlinable
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> Element? {
      // Inlinable, because a client's loop then reads the elements of a batch without an asynchronous call, and so
      // without a switch of executors. In `Tests/Clients/PeerBenchmarks`, reading an element of a backlog takes less
      // than half as long as without inlining.
      if subscriber.beginTakingFromBatch() { return subscriber.takeFromBatch() }
      switch try await subscriber.advance() {
      case .batch: return subscriber.takeFromBatch()
      case .handOffSlot(let slot): return subscriber.take(from: slot)
      case .end: return nil
      }
    }
  }
}
