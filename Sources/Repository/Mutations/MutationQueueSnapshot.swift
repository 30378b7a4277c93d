/// All that is in a ``MutationQueue`` at one moment.
///
/// Taking one costs nothing to speak of, however long the queue: snapshots share what did not change between them.
public struct MutationQueueSnapshot<Mutation: Sendable>: Sendable {
  let list: EntryList<MutationEntry<Mutation>>

  /// Whether what earlier processes left in the store has been read.
  public let isLoaded: Bool

  /// Whether the queue is held by ``MutationQueue/pause()``.
  public let isPaused: Bool

  /// How many mutations will be sent, those being sent included.
  public let waitingCount: Int

  /// How many dead letters there are.
  public let deadCount: Int

  /// How many entries there are in all.
  public var count: Int { list.count }

  /// The mutations that will be sent and the dead letters, in the order they were enqueued.
  ///
  /// Takes linear time.
  public var entries: [MutationEntry<Mutation>] { list.elements }
}
