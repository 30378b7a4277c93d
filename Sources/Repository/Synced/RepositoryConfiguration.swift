public import Foundation

/// How a ``SyncedRepository`` works.
///
/// Each part has a default that suits most apps.
public struct RepositoryConfiguration: Sendable {
  /// The most elements that a page may have.
  public var pageSize: Int

  /// The most pages that a value of a ``BidirectionalPagedSource`` keeps; `nil` for any number.
  ///
  /// What is fetched at one end of such a value shortens it at the other one. A value has at most ``pageSize`` elements for
  /// each page, besides those that changes of this device have put there.
  public var maximumPages: Int?

  /// When a stored value is good enough for ``SyncedRepository/refresh(_:)``.
  public var freshness: Freshness

  /// When a mutation that could not be sent is sent again, and when a store that failed is tried again.
  public var retryPolicy: RetryPolicy

  /// How much the queue of mutations may hold.
  public var queueLimits: QueueLimits

  /// Measures the waits between attempts.
  public var clock: any Clock<Duration>

  /// Returns the present time, for the age of values and mutations.
  public var now: @Sendable () -> Date

  /// Where the length of the waits comes from.
  public var random: any RandomNumberGenerator & Sendable

  /// Tells when the network comes and goes.
  ///
  /// On Apple's platforms `PathNetworkMonitor` asks the system. Without a monitor the network is always tried.
  public var network: any NetworkMonitor

  /// Tells when the app becomes active.
  ///
  /// Without a monitor it is always active.
  public var activity: any ActivityMonitor

  /// Decides which of the repositories on one store sends the mutations of all.
  public var leadership: any Leadership

  /// How much the store keeps, and for how long.
  public var eviction: EvictionPolicy

  /// Where the repository's tasks run; `nil` for the threads that all tasks share.
  ///
  /// For tests that order tasks themselves.
  package var taskExecutor: (any TaskExecutor)?

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - pageSize: The most elements that a page may have; at least 1.
  ///   - maximumPages: The most pages that a value keeps whose source fetches in both directions; at least 1.
  ///   - freshness: When a stored value is good enough for ``SyncedRepository/refresh(_:)``.
  ///   - retryPolicy: When a mutation that could not be sent is sent again.
  ///   - queueLimits: How much the queue of mutations may hold.
  ///   - clock: Measures the waits between attempts.
  ///   - now: Returns the present time, for the age of values and mutations.
  ///   - random: Where the length of the waits comes from.
  ///   - network: Tells when the network comes and goes.
  ///   - activity: Tells when the app becomes active.
  ///   - leadership: Decides which of the repositories on one store sends the mutations of all.
  ///   - eviction: How much the store keeps, and for how long; everything by default.
  public init(
    pageSize: Int = 20,
    maximumPages: Int? = nil,
    freshness: Freshness = Freshness(timeToLive: .seconds(60)),
    retryPolicy: RetryPolicy = RetryPolicy(),
    queueLimits: QueueLimits = QueueLimits(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() },
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    network: any NetworkMonitor = ManualNetworkMonitor(),
    activity: any ActivityMonitor = ManualActivityMonitor(),
    leadership: any Leadership = StoreLeadership(),
    eviction: EvictionPolicy = EvictionPolicy()
  ) {
    precondition(pageSize >= 1, "RepositoryConfiguration: 'pageSize' is at least 1, not \(pageSize).")
    precondition(
      maximumPages ?? 1 >= 1, "RepositoryConfiguration: 'maximumPages' is at least 1, not \(maximumPages ?? 1).")
    self.pageSize = pageSize
    self.maximumPages = maximumPages
    self.freshness = freshness
    self.retryPolicy = retryPolicy
    self.queueLimits = queueLimits
    self.clock = clock
    self.now = now
    self.random = random
    self.network = network
    self.activity = activity
    self.leadership = leadership
    self.eviction = eviction
  }
}
