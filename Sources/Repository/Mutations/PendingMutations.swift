public import DataStore
internal import Multicast

/// The mutations of a repository that the server doesn't have, or whose value isn't stored yet: to look at, and to deal
/// with those that wait for a decision.
///
/// The repository sends them by itself. A definite answer of the server ends an id: what is sent again after one has a new
/// id.
public struct PendingMutations<Source: MutableSource>: Sendable {
  /// A mutation in the queue.
  public typealias Item = PendingMutation<Source.Key, Source.Mutation>

  private let engine: SyncEngine<Source>

  init(_ engine: SyncEngine<Source>) {
    self.engine = engine
  }

  /// All mutations, in the order they were made.
  ///
  /// - Throws: A `StoreError` if the queue can't be read.
  /// - Complexity: O(*n* log *n*), where *n* is the number of mutations.
  public func list() async throws(StoreError) -> [Item] {
    try await engine.list()
  }

  /// All mutations in the order they were made: the present ones first, then the newest after each change.
  ///
  /// Changes that are made together are one element.
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

  /// Takes a mutation back that waits to be sent, waits for the user to sign in, or is in conflict.
  ///
  /// The call that made it throws ``RepositoryError/cancelled``.
  ///
  /// - Throws: ``PendingMutationError/alreadySent(_:)`` for any other one, ``PendingMutationError/unknown(_:)``, or
  ///   ``PendingMutationError/store(_:)``.
  public func cancel(_ id: MutationID) async throws(PendingMutationError) {
    try await engine.cancel(id)
  }

  /// Sends a mutation again that was refused, at the end of its lane.
  ///
  /// It has a new id, unless the server may have made it: then it keeps its id, so that the server makes it once.
  ///
  /// - Returns: The id under which it is sent.
  /// - Throws: ``PendingMutationError/notRefused(_:)``, ``PendingMutationError/conflict(_:)``,
  ///   ``PendingMutationError/unknown(_:)``, or ``PendingMutationError/store(_:)``.
  @discardableResult
  public func requeue(_ id: MutationID) async throws(PendingMutationError) -> MutationID {
    try await engine.requeue(id)
  }

  /// Decides what becomes of a mutation that is in conflict.
  ///
  /// What is sent has a new id, except a mutation that is tried again and that the server may have made already: that keeps
  /// its id, so that the server makes it once.
  ///
  /// - Returns: The id of what is sent; `nil` if the mutation was discarded.
  /// - Throws: ``PendingMutationError/notConflicted(_:)``, ``PendingMutationError/conflict(_:)`` if what is to be sent isn't
  ///   possible either, ``PendingMutationError/unknown(_:)``, or ``PendingMutationError/store(_:)``.
  @discardableResult
  public func resolve(
    _ id: MutationID, _ how: Resolution<Source.Mutation>
  ) async throws(PendingMutationError) -> MutationID? {
    try await engine.resolve(id, how)
  }

  /// Forgets a mutation that was refused, or is in conflict.
  ///
  /// - Throws: ``PendingMutationError/notRefused(_:)`` for any other one, ``PendingMutationError/unknown(_:)``, or
  ///   ``PendingMutationError/store(_:)``.
  public func discard(_ id: MutationID) async throws(PendingMutationError) {
    try await engine.discard(id)
  }
}
