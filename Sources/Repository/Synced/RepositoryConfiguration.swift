public import Foundation

/// The settings of a ``SyncedRepository``.
///
/// Each setting has a default that suits most apps.
public struct RepositoryConfiguration: Sendable {
  /// The maximum number of elements in a page.
  public var pageSize: Int

  /// The maximum number of pages that a value of a ``BidirectionalPagedSource`` keeps; `nil` for no limit.
  ///
  /// Fetching a page at one end of such a value drops elements at the other end until at most this number times
  /// ``pageSize`` remain. A mutation of this device, or a whole value that the server sends, can make the value longer
  /// until a page is fetched again.
  public var maximumPages: Int?

  /// The rule by which ``SyncedRepository/refresh(_:)`` treats a stored value as fresh.
  public var freshness: Freshness

  /// The maximum number of values that are fetched at the same time because they are observed; see
  /// ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
  ///
  /// The default, 8, keeps a connection busy, and doesn't flood a server when a device with hundreds of observed values
  /// reconnects. Further values are fetched in the order in which they became due. A fetch that takes longer than five
  /// seconds no longer counts, so a server that doesn't reply to some requests delays the others by that time at most.
  /// Calls such as ``SyncedRepository/refresh(_:)`` and ``SyncedRepository/reload(_:)`` neither wait nor count.
  public var maximumObservedFetches: Int

  /// The maximum number of lanes that send mutations at the same time; see ``MutableSource/orderingKey(of:on:)``.
  ///
  /// A send that takes longer than half a second no longer counts, so a server that doesn't answer some mutations
  /// delays the others by that time at most. Lanes whose last send took so long have as many places of their own, so
  /// they don't delay the others again.
  ///
  /// If the attempts of four times as many lanes fail in a row, the server probably can't be reached. Then one lane at
  /// a time sends, those with new mutations first, and the delays between the attempts grow, until the server answers.
  public var maximumConcurrentSends: Int

  /// The schedule for resending a mutation after a failed attempt, for retrying a failed operation of the store, and
  /// for repeating a fetch that mutations wait for.
  public var retryPolicy: RetryPolicy

  /// The limits on the queue of mutations.
  public var queueLimits: QueueLimits

  /// The clock that measures delays, intervals and time limits.
  public var clock: any Clock<Duration>

  /// A closure that returns the current time, used to determine the age of values and mutations.
  public var now: @Sendable () -> Date

  /// The random number generator that varies the delays between attempts, and those of the fetches of observed values.
  public var random: any RandomNumberGenerator & Sendable

  /// The monitor that reports whether the network is available.
  ///
  /// On Apple platforms, `PathNetworkMonitor` uses the system's path monitor. By default, the status is unknown, and
  /// the repository always tries the network.
  public var network: any NetworkMonitor

  /// The monitor that reports whether the app is active.
  ///
  /// By default, the app is always considered active.
  public var activity: any ActivityMonitor

  /// The rule that decides which of the repositories on one store sends the mutations of all of them.
  public var leadership: any Leadership

  /// The limits on the number, the size and the idle time of stored values.
  public var eviction: EvictionPolicy

  /// The executor of the repository's tasks; `nil` for the default executor.
  ///
  /// Tests use it to control the order of tasks.
  package var taskExecutor: (any TaskExecutor)?

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - pageSize: The maximum number of elements in a page; at least 1.
  ///   - maximumPages: The maximum number of pages that a value keeps if its source fetches in both directions; at
  ///     least 1.
  ///   - freshness: The rule by which ``SyncedRepository/refresh(_:)`` treats a stored value as fresh.
  ///   - maximumObservedFetches: The maximum number of values that are fetched at the same time because they are
  ///     observed; at least 1.
  ///   - maximumConcurrentSends: The maximum number of lanes that send mutations at the same time; at least 1.
  ///   - retryPolicy: The schedule for resending a mutation after a failed attempt, for retrying a failed operation of
  ///     the store, and for repeating a fetch that mutations wait for or whose replies are discarded.
  ///   - queueLimits: The limits on the queue of mutations.
  ///   - clock: The clock that measures delays, intervals and time limits.
  ///   - now: A closure that returns the current time, used to determine the age of values and mutations.
  ///   - random: The random number generator that varies the delays between attempts, and those of the fetches of
  ///     observed values.
  ///   - network: The monitor that reports whether the network is available.
  ///   - activity: The monitor that reports whether the app is active.
  ///   - leadership: The rule that decides which of the repositories on one store sends the mutations of all of them.
  ///   - eviction: The limits on the number, the size and the idle time of stored values. By default, all values are
  ///     kept.
  public init(
    pageSize: Int = 20,
    maximumPages: Int? = nil,
    freshness: Freshness = Freshness(timeToLive: .seconds(60)),
    maximumObservedFetches: Int = 8,
    maximumConcurrentSends: Int = 4,
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
    precondition(pageSize >= 1, "RepositoryConfiguration: 'pageSize' must be at least 1, not \(pageSize).")
    precondition(
      maximumPages ?? 1 >= 1, "RepositoryConfiguration: 'maximumPages' must be at least 1, not \(maximumPages ?? 1).")
    precondition(
      maximumObservedFetches >= 1,
      "RepositoryConfiguration: 'maximumObservedFetches' must be at least 1, not \(maximumObservedFetches).")
    precondition(
      maximumConcurrentSends >= 1,
      "RepositoryConfiguration: 'maximumConcurrentSends' must be at least 1, not \(maximumConcurrentSends).")
    self.pageSize = pageSize
    self.maximumPages = maximumPages
    self.freshness = freshness
    self.maximumObservedFetches = maximumObservedFetches
    self.maximumConcurrentSends = maximumConcurrentSends
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
