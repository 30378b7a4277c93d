internal import Multicast
public import Observation

/// The newest value that a repository shows under a key, for a view.
///
/// ```swift
/// let observed = Observed(comments.values(of: postID))
/// await observed.run()  // From a view: .task { await observed.run() }
/// ```
@MainActor
@Observable
public final class Observed<Value: Sendable> {
  /// The newest value; `nil` as long as there is none.
  public private(set) var value: Value?

  @ObservationIgnored private let values: ObservedValues<Value>
  @ObservationIgnored private var following: MulticastSubscription<Value, Never>?

  /// Creates an object that shows nothing until ``run()``.
  public init(_ values: ObservedValues<Value>) {
    self.values = values.buffering(.latest)
  }

  deinit {
    following?.cancel()
  }

  /// Follows the values until the calling task is cancelled, the repository or this object is released, or another call
  /// begins.
  ///
  /// The call doesn't keep the object alive. Await it from the task of a view.
  public consuming func run() async {
    let subscription = values.subscribe()
    following?.cancel()
    following = subscription
    let subscriber = WeakSubscriber(copy self)
    // Consumed, so that what waits from here on doesn't keep the object.
    _ = consume self
    await subscriber.receive(subscription) { $0.value = $1 }
  }
}
