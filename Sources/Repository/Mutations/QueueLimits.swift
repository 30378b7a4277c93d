/// The limits of a repository's queue of mutations.
///
/// A mutation that would exceed a limit is not made: `perform(_:on:)` throws ``RepositoryError/queueFull``. A queued
/// mutation is never dropped because of a limit.
public struct QueueLimits: Hashable, Sendable {
  /// The greatest number of mutations, including those that the server refused and those that are in conflict.
  public let maximumCount: Int

  /// The greatest total size of the encoded mutations, in bytes.
  public let maximumBytes: Int

  /// The greatest age of the oldest mutation, or `nil` for no limit.
  ///
  /// Once the oldest mutation has this age, the queue accepts no more. Mutations that the server refused, and those
  /// that are in conflict, don't count. An app can use this limit to show that its server hasn't been reached for that
  /// long.
  public let maximumAge: Duration?

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - maximumCount: The greatest number of mutations, at least 1.
  ///   - maximumBytes: The greatest total size of the encoded mutations in bytes, at least 1. The default is 32 MiB.
  ///   - maximumAge: The greatest age of the oldest mutation, or `nil` for no limit.
  public init(maximumCount: Int = 20_000, maximumBytes: Int = 32 << 20, maximumAge: Duration? = nil) {
    precondition(maximumCount >= 1, "QueueLimits: 'maximumCount' must be at least 1, but is \(maximumCount).")
    precondition(maximumBytes >= 1, "QueueLimits: 'maximumBytes' must be at least 1, but is \(maximumBytes).")
    self.maximumCount = maximumCount
    self.maximumBytes = maximumBytes
    self.maximumAge = maximumAge
  }
}
