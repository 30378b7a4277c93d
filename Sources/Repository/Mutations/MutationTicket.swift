internal import Multicast

/// Tells what becomes of one mutation.
///
/// It may be kept and asked at any time, by any number of tasks, also after the queue is gone; it does not keep the
/// queue alive.
public struct MutationTicket<Reply: Sendable, Failure: Error>: Sendable {
  enum Progress: Sendable {
    case underWay
    case fate(MutationFate<Reply, Failure>)
  }

  /// The mutation.
  public let id: MutationID

  let progress: MulticastStream<Progress, Never>

  /// What has become of the mutation, as soon as it is settled or known that it has to wait.
  ///
  /// Does not wait for the network to come back: then it says ``MutationFate/queued``. It does wait for somebody to run
  /// the queue.
  ///
  /// - Throws: `CancellationError` when the calling task was cancelled first, or the queue was released. The mutation
  ///   stays in the queue.
  public func fate() async throws(CancellationError) -> MutationFate<Reply, Failure> {
    for await progress in progress {
      if case .fate(let fate) = progress { return fate }
    }
    throw CancellationError()
  }

  /// What has become of the mutation, once it is delivered, refused or cancelled; never ``MutationFate/queued``.
  ///
  /// - Throws: `CancellationError` when the calling task was cancelled first, or the queue was released. The mutation
  ///   stays in the queue.
  public func settled() async throws(CancellationError) -> MutationFate<Reply, Failure> {
    for await progress in progress {
      switch progress {
      case .underWay, .fate(.queued): continue
      case .fate(let fate): return fate
      }
    }
    throw CancellationError()
  }
}
