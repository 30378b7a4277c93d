/// The limits on the values that a ``SyncedRepository`` keeps in the store.
///
/// ```swift
/// var configuration = RepositoryConfiguration()
/// configuration.eviction = EvictionPolicy(maximumBytes: 50_000_000, idleTime: .seconds(30 * 86_400))
/// let comments = SyncedRepository(CommentsSource(client), store: store, configuration: configuration)
/// ```
///
/// The least recently used values are evicted first. A value is used when it is fetched or changed, at the end of each
/// call for it, and when its last observer leaves. Of the uses in an earlier process, only the last save is known.
///
/// Values in use are kept even if they exceed the limits. When their use ends, they are evicted if the limits are still
/// exceeded. While the kept values alone exceed the limits, any other value is removed as soon as the call for it has
/// ended. The kept values are:
/// - values that are observed, or in use by a call, in this repository,
/// - values with mutations that the server doesn't have yet, made by any repository,
/// - pinned values; see ``RepositorySource/isPinned(_:)``.
///
/// The next ``SyncedRepository/refresh(_:)`` fetches an evicted value again.
///
/// Each repository on a store applies its own policy and counts the values that all of them store. It doesn't know
/// which values another process observes, and a value that it evicts is removed for the other processes too. So set the
/// policy in one of them only, for example in the app and not in its extension.
public struct EvictionPolicy: Hashable, Sendable {
  /// The greatest number of values of the repository in the store, or `nil` for no limit.
  public var maximumCount: Int?

  /// The greatest total size of the stored values in bytes, or `nil` for no limit.
  public var maximumBytes: Int?

  /// The time without use after which a value is evicted, or `nil` for no limit.
  public var idleTime: Duration?

  /// Creates a policy.
  ///
  /// Without arguments, the policy keeps everything.
  ///
  /// - Parameters:
  ///   - maximumCount: The greatest number of values of the repository in the store.
  ///   - maximumBytes: The greatest total size of the stored values in bytes.
  ///   - idleTime: The time without use after which a value is evicted.
  public init(maximumCount: Int? = nil, maximumBytes: Int? = nil, idleTime: Duration? = nil) {
    self.maximumCount = maximumCount
    self.maximumBytes = maximumBytes
    self.idleTime = idleTime
  }

  /// Whether the policy sets any limit.
  var isLimited: Bool { self != EvictionPolicy() }
}
