internal import Synchronization

/// Process-wide counts of live channels and subscriptions, for finding leaks in tests and while debugging.
///
/// These counts are the counterpart of RxSwift's `Resources.total`, and are maintained in every build. Each object
/// costs one atomic operation when it is created and one when it is released. To find a leak, read a count before and
/// after the code in question. If it is higher afterwards, something that was created in between is still alive.
public enum MulticastDiagnostics {
  /// The number of live subscriptions: one for each ``MulticastSubscription``, and one for each iterator of a
  /// ``MulticastStream`` or ``MulticastSequence``.
  public static var liveSubscriptions: Int { subscriptionCount.load(ordering: .relaxed) }

  /// The number of live channels and relays.
  ///
  /// The few channels that the package creates once for the whole process don't count.
  public static var liveChannels: Int { channelCount.load(ordering: .relaxed) }

  private static let subscriptionCount = Atomic<Int>(0)
  private static let channelCount = Atomic<Int>(0)

  /// Counts one live subscription for as long as this token exists.
  struct LiveSubscription: ~Copyable, Sendable {
    init() { subscriptionCount.add(1, ordering: .relaxed) }
    deinit { subscriptionCount.subtract(1, ordering: .relaxed) }
  }

  /// Counts one live channel for as long as this token exists.
  struct LiveChannel: ~Copyable, Sendable {
    init() { channelCount.add(1, ordering: .relaxed) }
    deinit { channelCount.subtract(1, ordering: .relaxed) }
  }
}
