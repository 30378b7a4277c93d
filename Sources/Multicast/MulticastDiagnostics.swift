internal import Synchronization

/// Process-wide counts of what is alive, to find leaks in tests and while debugging.
///
/// The counterpart of RxSwift's `Resources.total`, always on: each count costs one atomic addition when the object is
/// made and one when it goes. Both return to their baseline when everything made since is released.
public enum MulticastDiagnostics {
  /// How many subscriptions exist: one for each iterator's loop and each ``MulticastSubscription`` still held.
  public static var liveSubscriptions: Int { subscriptions.load(ordering: .relaxed) }

  /// How many channels and relays exist.
  public static var liveChannels: Int { channels.load(ordering: .relaxed) }

  private static let subscriptions = Atomic<Int>(0)
  private static let channels = Atomic<Int>(0)

  /// Counts one live subscription for as long as it exists.
  struct LiveSubscription: ~Copyable, Sendable {
    init() { subscriptions.add(1, ordering: .relaxed) }
    deinit { subscriptions.subtract(1, ordering: .relaxed) }
  }

  /// Counts one live channel for as long as it exists.
  struct LiveChannel: ~Copyable, Sendable {
    init() { channels.add(1, ordering: .relaxed) }
    deinit { channels.subtract(1, ordering: .relaxed) }
  }
}
