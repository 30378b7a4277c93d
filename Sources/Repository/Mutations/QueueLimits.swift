/// How much a repository's queue of mutations may hold.
///
/// A mutation that would exceed a limit is not made: `perform(_:on:)` throws ``RepositoryError/queueFull``. Nothing that is
/// queued is ever dropped for a limit.
public struct QueueLimits: Hashable, Sendable {
  /// The most mutations, those that were refused or are in conflict included.
  public let maximumCount: Int

  /// The most bytes that the encoded mutations take together.
  public let maximumBytes: Int

  /// The age of the oldest mutation from which the queue takes no more; `nil` for no limit.
  ///
  /// A queue that old has not reached its server for so long that the user should know.
  public let maximumAge: Duration?

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - maximumCount: The most mutations, at least 1.
  ///   - maximumBytes: The most bytes that the encoded mutations take together, at least 1.
  ///   - maximumAge: The age of the oldest mutation from which the queue takes no more; `nil` for no limit.
  public init(maximumCount: Int = 20_000, maximumBytes: Int = 32 << 20, maximumAge: Duration? = nil) {
    precondition(maximumCount >= 1, "QueueLimits: 'maximumCount' is at least 1, not \(maximumCount).")
    precondition(maximumBytes >= 1, "QueueLimits: 'maximumBytes' is at least 1, not \(maximumBytes).")
    self.maximumCount = maximumCount
    self.maximumBytes = maximumBytes
    self.maximumAge = maximumAge
  }
}
