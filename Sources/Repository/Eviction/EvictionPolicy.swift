/// The limits on the values that a ``SyncedRepository`` keeps in the store.
///
/// ```swift
/// var configuration = RepositoryConfiguration()
/// configuration.eviction = EvictionPolicy(maximumBytes: 50_000_000, idleTime: .seconds(30 * 86_400))
/// let comments = SyncedRepository(CommentsSource(client), store: store, configuration: configuration)
/// ```
///
/// The least recently used values are evicted first. A value counts as used when it is fetched or changed, at the end
/// of each call for it, and when its last observer leaves. Of the uses in an earlier process, only the last save is
/// known.
///
/// These values are kept even while the limits are exceeded:
/// - values that are observed, or in use by a call, in this repository,
/// - values that another repository of the same source observes in this process on the same store, or on another store
///   over the same place,
/// - values with mutations, made by any repository, that are waiting or in flight,
/// - pinned values; see ``RepositorySource/isPinned(_:)``.
///
/// When the last observer, call or mutation of a kept value is gone, the value is evicted if the limits are still
/// exceeded. So while the other kept values alone exceed the limits, a value that only a call keeps is evicted as soon
/// as the call has ended. A value that was kept because another repository observed it is considered again when the
/// limits are checked the next time.
///
/// The next ``SyncedRepository/refresh(_:)`` fetches an evicted value again.
///
/// If several repositories of one source use the same store, each applies its own policy and counts the values that all
/// of them store. It doesn't know which values a repository of another process observes, and a value that it evicts is
/// removed for the others too: their observers get ``RepositoryState/Presence/nothing``. So set a policy for only one
/// of them, for example for that of the app and not for that of its extension.
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
