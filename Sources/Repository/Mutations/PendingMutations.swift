public import DataStore
internal import Multicast

/// The queue of a repository's mutations: lists them, and acts on those that need a decision.
///
/// The repository sends them on its own. A mutation stays in the queue until the server has it and the value with the
/// change is stored, unless it is cancelled or discarded. If a refused or conflicted mutation is sent again, it keeps
/// its id only if the server may have made its change, so that the server doesn't make the change twice.
public struct PendingMutations<Source: MutableSource>: Sendable {
  /// A mutation in the queue.
  public typealias Item = PendingMutation<Source.Key, Source.Mutation>

  private let engine: SyncEngine<Source>

  init(_ engine: SyncEngine<Source>) {
    self.engine = engine
  }

  /// Returns all mutations in the order they were made.
  ///
  /// A mutation that was requeued counts as made when it was requeued.
  ///
  /// - Throws: A `StoreError` if the queue can't be read.
  /// - Complexity: O(*n* log *n*), where *n* is the number of mutations.
  public func list() async throws(StoreError) -> [Item] {
    try await engine.list()
  }

  /// All mutations in the order they were made: the present list first, then the newest list after each change of the
  /// queue.
  ///
  /// Changes of the queue that are made together are one element.
  public var changes: ObservedValues<[Item]> {
    ObservedValues(.latest) { [weak engine] in
      guard let engine else { return finishedStream() }
      return engine.channels.lists.stream(of: engine.listKey) {
        engine.tasks.start { [weak engine] in await engine?.observeList() }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObservingList() }
      }
    }
  }

  /// Cancels a mutation that is waiting, needs a sign-in, or is in conflict, and rolls it back.
  ///
  /// If the call that made it still waits, that call throws ``RepositoryError/cancelled``. If the outcome of an earlier
  /// attempt is unknown, the server may have the change nevertheless.
  ///
  /// - Throws: ``PendingMutationError/alreadySent(_:)`` if the mutation is in flight, being completed, refused or not
  ///   durable yet, or if it is completed or removed during the call; ``PendingMutationError/unknown(_:)``; or
  ///   ``PendingMutationError/store(_:)``.
  public func cancel(_ id: MutationID) async throws(PendingMutationError) {
    try await engine.cancel(id)
  }

  /// Sends a refused mutation again, at the end of its lane.
  ///
  /// The mutation gets a new id. But if the server may have made the change already, the mutation keeps its id, so that
  /// the change isn't made twice. The server may have made the change of a refused mutation, because a mutation also
  /// counts as refused if the repository gave it up; see ``MutationRefusal``.
  ///
  /// - Returns: The id under which it is sent.
  /// - Throws: ``PendingMutationError/notRefused(_:)``, ``PendingMutationError/conflict(_:)``,
  ///   ``PendingMutationError/alreadySent(_:)`` if the mutation isn't durable yet,
  ///   ``PendingMutationError/unknown(_:)``, or ``PendingMutationError/store(_:)``.
  @discardableResult
  public func requeue(_ id: MutationID) async throws(PendingMutationError) -> MutationID {
    try await engine.requeue(id)
  }

  /// Resolves a mutation that is in conflict.
  ///
  /// The mutation that is sent gets a new id. But a retried mutation keeps its id if the server may have made the
  /// change already, so that the change isn't made twice.
  ///
  /// - Returns: The id of the mutation that is sent, or `nil` if it was discarded.
  /// - Throws: ``PendingMutationError/notConflicted(_:)``, ``PendingMutationError/conflict(_:)`` if the mutation to
  ///   send isn't possible either, ``PendingMutationError/alreadySent(_:)`` if the mutation isn't durable yet,
  ///   ``PendingMutationError/unknown(_:)``, or ``PendingMutationError/store(_:)``.
  @discardableResult
  public func resolve(
    _ id: MutationID, _ how: Resolution<Source.Mutation>
  ) async throws(PendingMutationError) -> MutationID? {
    try await engine.resolve(id, how)
  }

  /// Forgets a refused or conflicted mutation.
  ///
  /// - Throws: ``PendingMutationError/notRefused(_:)`` for any other mutation, ``PendingMutationError/alreadySent(_:)``
  ///   if the mutation isn't durable yet, ``PendingMutationError/unknown(_:)``, or ``PendingMutationError/store(_:)``.
  public func discard(_ id: MutationID) async throws(PendingMutationError) {
    try await engine.discard(id)
  }
}
