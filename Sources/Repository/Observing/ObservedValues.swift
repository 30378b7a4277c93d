public import Multicast

/// What observers of a repository see of one key: an asynchronous sequence that any number of tasks may iterate.
///
/// It is a description. Iterating it, or ``subscribe()``, opens the key in the repository. When the last iterator and
/// subscription of a key are gone, and no mutation of it waits, the repository releases what it holds for the key.
///
/// ```swift
/// for await profile in profiles.values(of: userID) {
///   show(profile)
/// }
/// ```
///
/// - **Ordering**: An observer gets the newest element first, if there is one, then every later one, in order. What the
///   repository takes in together may be one element. Nothing is dropped, however slow the observer is; one that needs only
///   the newest element uses `buffering(.latest)`.
/// - **Cancellation** ends the sequence.
/// - **End**: The sequence ends when the repository is released. It doesn't keep the repository alive.
public struct ObservedValues<Element: Sendable>: AsyncSequence, Sendable {
  /// Reads the sequence.
  ///
  /// Cancelling the task that waits for an element ends the sequence.
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

  private let open: @Sendable () -> MulticastStream<Element, Never>
  private let policy: BufferingPolicy<Never>

  /// - Parameters:
  ///   - policy: What the buffer of an observer does while the observer is busy.
  ///   - open: Returns the stream of the key.
  init(_ policy: BufferingPolicy<Never> = .unbounded, open: @escaping @Sendable () -> MulticastStream<Element, Never>) {
    self.policy = policy
    self.open = open
  }

  /// Creates a sequence of the elements of a stream, for a stand-in of a repository.
  public init(_ stream: MulticastStream<Element, Never>) {
    self.init(stream.policy) { stream }
  }

  /// Opens the key, and returns an iterator over its values.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(open().buffering(policy).makeAsyncIterator())
  }

  /// Opens the key now, to read its values later.
  public func subscribe() -> MulticastSubscription<Element, Never> {
    open().buffering(policy).subscribe()
  }

  /// The same sequence with a buffering of this observer's own.
  public func buffering(_ policy: BufferingPolicy<Never>) -> Self {
    Self(policy, open: open)
  }

  /// The elements of another sequence, changed.
  ///
  /// Elements that become equal to the one before are left out.
  package static func mapping<Base: Sendable>(
    _ base: ObservedValues<Base>, _ policy: BufferingPolicy<Never> = .unbounded,
    _ transform: @escaping @Sendable (Base) -> Element
  ) -> Self where Element: Equatable {
    Self(policy) {
      let subscription = base.subscribe()
      let task = CurrentValueRelay<Task<Void, Never>?>(nil)
      let (channel, stream) = UnownedChannel<Element>.makeStream(replay: 1) { task.value?.cancel() }
      task.send(
        Task {
          var last: Element?
          for await element in subscription {
            let mapped = transform(element)
            if mapped != last { channel.send(mapped) }
            last = mapped
          }
          channel.finish()
        })
      return stream
    }
  }
}
