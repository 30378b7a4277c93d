/// The limits of a repository's queue of mutations.
///
/// A mutation that would exceed a limit is not made: `perform(_:on:)` throws ``RepositoryError/queueFull``. A queued
/// mutation is never dropped because of a limit.
public struct QueueLimits: Hashable, Sendable {
  /// The greatest number of mutations, including those that are refused or in conflict.
  public let maximumCount: Int

  /// The greatest total size of the encoded mutations, in bytes.
  public let maximumBytes: Int

  /// The age of the oldest mutation at which the queue accepts no more mutations, or `nil` for no limit.
  ///
  /// Mutations that are refused or in conflict don't count. If the queue has not reached its server for that long, the
  /// user should know.
  public let maximumAge: Duration?

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - maximumCount: The greatest number of mutations, at least 1.
  ///   - maximumBytes: The greatest total size of the encoded mutations in bytes, at least 1.
  ///   - maximumAge: The age of the oldest mutation at which the queue accepts no more mutations, or `nil` for no
  ///     limit.
  public init(maximumCount: Int = 20_000, maximumBytes: Int = 32 << 20, maximumAge: Duration? = nil) {
    precondition(maximumCount >= 1, "QueueLimits: 'maximumCount' must be at least 1, but is \(maximumCount).")
    precondition(maximumBytes >= 1, "QueueLimits: 'maximumBytes' must be at least 1, but is \(maximumBytes).")
    self.maximumCount = maximumCount
    self.maximumBytes = maximumBytes
    self.maximumAge = maximumAge
  }
}
