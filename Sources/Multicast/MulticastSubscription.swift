/// One registered subscriber of a channel.
///
/// ``MulticastStream/subscribe()`` makes it; it is in force from then on, whether or not a task iterates it yet. All
/// its iterators share it: an element goes to one of them, first come, first served. To give every loop all elements,
/// iterate the ``MulticastStream`` instead.
///
/// - **Cancellation**: Cancelling a task that reads, or calling ``cancel()``, ends the subscription for all its
///   iterators and releases its backlog. An element that was already handed off is still returned.
/// - **Dropping** the subscription and its last iterator unregisters it at once.
public final class MulticastSubscription<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
  private let reader: ChannelReader<Element, Failure>

  init(_ reader: ChannelReader<Element, Failure>) {
    self.reader = reader
  }

  /// How many elements were sent to this subscription that it will never return, because its policy dropped them or
  /// because it was cancelled before it read them.
  ///
  /// Exact at every moment: received, dropped and still buffered elements together are the replayed ones and all sent
  /// while it was registered. What a call of `next()` has fetched for later calls is buffered until they read it, or
  /// until it is discarded right after a ``cancel()`` that met that call.
  public var droppedCount: Int { reader.droppedCount }

  /// Ends this subscription: every call of `next()`, waiting or to come, returns nil, and the backlog is released.
  public func cancel() {
    reader.cancel()
  }

  /// Returns an iterator over what this subscription has not delivered yet.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(reader: reader)
  }

  /// Reads one subscription.
  public struct AsyncIterator: AsyncIteratorProtocol {
    @usableFromInline
    let reader: ChannelReader<Element, Failure>

    init(reader: ChannelReader<Element, Failure>) {
      self.reader = reader
    }

    /// Returns the next element, waiting for one if need be; nil at the end and for ever after.
    ///
    /// Runs on the caller's isolation without an extra hop.
    ///
    /// - Throws: The channel's failure, or the error of this subscriber's ``BufferingPolicy/error(_:_:)`` policy: once,
    ///   after everything that was buffered.
    @inlinable
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> Element? {
      // Inlinable, because the peer benchmarks say so: in a client's loop it takes less than half the time for an
      // element of a backlog, as the hops between executors and the frame of the call go.
      if reader.beginTakingFromBatch() { return reader.takeFromBatch() }
      switch try await reader.advance() {
      case .batch: return reader.takeFromBatch()
      case .mailbox(let mailbox): return reader.take(from: mailbox)
      case .end: return nil
      }
    }
  }
}
