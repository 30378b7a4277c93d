/// How much a ``SyncedRepository`` keeps in the store, and for how long.
///
/// ```swift
/// var configuration = RepositoryConfiguration()
/// configuration.eviction = EvictionPolicy(maximumBytes: 50_000_000, idleTime: .seconds(30 * 86_400))
/// let comments = SyncedRepository(CommentsSource(client), store: store, configuration: configuration)
/// ```
///
/// What goes first is what was used least recently. A value is used when it is fetched or changed, at the end of each call
/// for it, and when its last observer leaves. What an earlier process used is known by the time of its last save alone.
///
/// These stay, also if the limits are exceeded because of them, and go when their use ends if there is still too much. Other
/// values are then removed as soon as their call has ended.
/// - what is observed, or in use by a call, in this repository,
/// - what has mutations that the server doesn't have yet, of whatever repository,
/// - what is pinned; see ``RepositorySource/isPinned(_:)``.
///
/// What is evicted is fetched again by the next ``SyncedRepository/refresh(_:)``.
///
/// Each repository on a store goes by its own policy, counts what all of them store, and doesn't know what another process
/// observes: what is evicted is removed there too. So give the policy to one of them, such as the app's and not its
/// extension's.
public struct EvictionPolicy: Hashable, Sendable {
  /// The most values of the repository that the store may have; `nil` for any number.
  public var maximumCount: Int?

  /// The most bytes that they may have as they are stored; `nil` for any number.
  public var maximumBytes: Int?

  /// After how much time without a use a value goes; `nil` if that doesn't matter.
  public var idleTime: Duration?

  /// Creates a policy; without an argument one that keeps everything.
  ///
  /// - Parameters:
  ///   - maximumCount: The most values of the repository that the store may have.
  ///   - maximumBytes: The most bytes that they may have as they are stored.
  ///   - idleTime: After how much time without a use a value goes.
  public init(maximumCount: Int? = nil, maximumBytes: Int? = nil, idleTime: Duration? = nil) {
    self.maximumCount = maximumCount
    self.maximumBytes = maximumBytes
    self.idleTime = idleTime
  }

  /// Whether anything may have to go.
  var isLimited: Bool { self != EvictionPolicy() }
}
