public import Multicast

/// The values or states of a key over time: an asynchronous sequence that any number of tasks can iterate.
///
/// The sequence itself holds no resources. Iterating it, or calling ``subscribe()``, opens the key in the repository,
/// which then reads its stored value. The repository may release the state of a key once nothing uses the key: no
/// iterator, subscription, call or pending mutation.
///
/// ```swift
/// for await profile in profiles.values(of: userID) {
///   show(profile)
/// }
/// ```
///
/// - **Ordering**: An observer receives the current element first, if there is one, then every later one in order.
///   Changes that the repository processes together may be delivered as one element.
/// - **Overflow**: By default, nothing is dropped, however slow the observer is. An observer that needs only the newest
///   element uses `buffering(.latest)`, which is the default of ``PendingMutations/changes``.
/// - **Cancellation** of a task ends its iteration.
/// - **Completion**: The sequence finishes when the repository is released. It doesn't keep the repository alive.
public struct ObservedValues<Element: Sendable>: AsyncSequence, Sendable {
  /// An iterator over the elements.
  ///
  /// Cancelling the task that waits for an element ends the iteration.
  public struct AsyncIterator: AsyncIteratorProtocol {
    @usableFromInline
    var base: MulticastSubscription<Element, Never>.AsyncIterator

    fileprivate init(_ base: MulticastSubscription<Element, Never>.AsyncIterator) {
      self.base = base
    }

    /// Returns the next element, or `nil` at the end.
    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Element? {
      await base.next(isolation: actor)
    }
  }

  private let openStream: @Sendable () -> MulticastStream<Element, Never>
  private let policy: BufferingPolicy<Never>

  /// - Parameters:
  ///   - policy: The buffering policy of an observer.
  ///   - openStream: A closure that opens the key, and returns its stream.
  init(
    _ policy: BufferingPolicy<Never> = .unbounded, openStream: @escaping @Sendable () -> MulticastStream<Element, Never>
  ) {
    self.policy = policy
    self.openStream = openStream
  }

  /// Creates a sequence from the elements of a stream, for use in a test double of a repository.
  public init(_ stream: MulticastStream<Element, Never>) {
    self.init(stream.policy) { stream }
  }

  /// Opens the key, and returns an iterator over its elements.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(openStream().buffering(policy).makeAsyncIterator())
  }

  /// Opens the key now, and returns a subscription whose elements can be read later.
  public func subscribe() -> MulticastSubscription<Element, Never> {
    openStream().buffering(policy).subscribe()
  }

  /// Returns the same sequence with a different buffering policy.
  public func buffering(_ policy: BufferingPolicy<Never>) -> Self {
    Self(policy, openStream: openStream)
  }

  /// Returns a sequence with the transformed elements of another sequence.
  ///
  /// A transformed element that equals the previous one is omitted.
  package static func mapping<Base: Sendable>(
    _ base: ObservedValues<Base>, _ policy: BufferingPolicy<Never> = .unbounded,
    _ transform: @escaping @Sendable (Base) -> Element
  ) -> Self where Element: Equatable {
    Self(policy) {
      let subscription = base.subscribe()
      let taskRelay = CurrentValueRelay<Task<Void, Never>?>(nil)
      // The task doesn't keep the channel alive, and is cancelled when the channel is released.
      let (channel, stream) = UnownedChannel<Element>.makeStream(replay: 1) { taskRelay.value?.cancel() }
      taskRelay.send(
        Task {
          var previous: Element?
          for await element in subscription {
            let mapped = transform(element)
            if mapped != previous { channel.send(mapped) }
            previous = mapped
          }
          channel.finish()
        })
      return stream
    }
  }
}
