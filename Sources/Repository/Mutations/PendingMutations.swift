public import DataStore
internal import Multicast

/// The queue of a repository's mutations: lists them, and acts on those that need a decision.
///
/// The repository sends them on its own. A mutation stays in the queue until the server has it and the value with the
/// change is stored, unless it is cancelled or discarded. If a refused or conflicted mutation is sent again, it keeps
/// its id only if the server may have made its change, so that the server doesn't make the change twice.
///
/// A value of this type doesn't keep the repository alive. After the repository was released, the queue counts as
/// empty: another repository on the store sends and lists the mutations.
public struct PendingMutations<Source: MutableSource>: Sendable {
  /// A mutation in the queue.
  public typealias Item = PendingMutation<Source.Key, Source.Mutation>

  /// Returns the engine unless the repository was released.
  private let currentEngine: @Sendable () -> SyncEngine<Source>?

  init(_ engine: SyncEngine<Source>) {
    currentEngine = { [weak engine] in
      guard let engine, !engine.tasks.areCancelled else { return nil }
      return engine
    }
  }

  private func engine(for id: MutationID) throws(PendingMutationError) -> SyncEngine<Source> {
    guard let engine = currentEngine() else { throw .unknown(id) }
    return engine
  }

  /// Returns all mutations in the order they were made.
  ///
  /// A mutation that was requeued counts as made when it was requeued.
  ///
  /// - Throws: A `StoreError` if the queue can't be read.
  /// - Complexity: O(*n* log *n*), where *n* is the number of mutations.
  public func list() async throws(StoreError) -> [Item] {
    try await currentEngine()?.list() ?? []
  }

  /// All mutations in the order they were made: the present list first, then the newest list after each change of the
  /// queue.
  ///
  /// Changes of the queue that are made together are one element. If there are more than 256 mutations, so are the
  /// changes that are made within 16 milliseconds for each 256 of them.
  public var changes: ObservedValues<[Item]> {
    ObservedValues(.latest) { [currentEngine] in
      guard let engine = currentEngine() else { return finishedStream() }
      return engine.channels.lists.stream(of: engine.recordKeys.collection) {
        engine.tasks.start { [weak engine] in await engine?.observeList() }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObservingList() }
      }
    }
  }

  /// Returns the mutations that this version of the program can't read, in the order they were made.
  ///
  /// Another version of the program has made them, and this one doesn't know their form, their schema or their key.
  /// They stay in the store as they are, until a version that can read them sends them, or until they are discarded.
  /// They aren't applied to values, and the mutations behind them in their lanes wait. They count in
  /// ``RepositoryState/isPending``, ``QueueLimits/maximumCount`` and at a sign-out, but not for
  /// ``SyncedRepository/waitForPendingMutations()``.
  ///
  /// - Throws: A `StoreError` if the queue can't be read.
  /// - Complexity: O(*n* log *n*), where *n* is the number of these mutations.
  public func unreadable() async throws(StoreError) -> [UnreadableMutation<Source.Key>] {
    try await currentEngine()?.unreadable() ?? []
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
    try await engine(for: id).cancel(id)
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
    try await engine(for: id).requeue(id)
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
    try await engine(for: id).resolve(id, how)
  }

  /// Forgets a refused or conflicted mutation, or an unreadable one; see ``unreadable()``.
  ///
  /// - Throws: ``PendingMutationError/notRefused(_:)`` for any other mutation, ``PendingMutationError/alreadySent(_:)``
  ///   if the mutation isn't durable yet, or if it is unreadable and another version of the program may be sending it,
  ///   ``PendingMutationError/unknown(_:)``, or ``PendingMutationError/store(_:)``.
  public func discard(_ id: MutationID) async throws(PendingMutationError) {
    try await engine(for: id).discard(id)
  }
}
