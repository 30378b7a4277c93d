internal import Multicast
public import Observation

/// An observable object that holds the newest value of a key, for use in a view.
///
/// ```swift
/// let observed = Observed(comments.values(of: postID))
/// await observed.run()  // From a view: .task { await observed.run() }
/// ```
@MainActor
@Observable
public final class Observed<Value: Sendable> {
  /// The newest value; `nil` if there is none yet.
  public private(set) var value: Value?

  @ObservationIgnored private let values: ObservedValues<Value>
  @ObservationIgnored private let currentSubscription = CurrentSubscription<Value>()

  /// Creates an object that has no value until ``run()`` is called.
  public init(_ values: ObservedValues<Value>) {
    self.values = values.buffering(.latest)
  }

  /// Receives values until the calling task is cancelled, the repository or this object is released, or `run()` is
  /// called again.
  ///
  /// The call doesn't keep the object alive. Call `run()` from the task of a view.
  public consuming func run() async {
    let subscription = currentSubscription.replace(with: values.subscribe())
    await WeakSubscriber(consume self).receive(subscription) { $0.value = $1 }
  }
}
