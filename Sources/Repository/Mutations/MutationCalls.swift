/// The calls of `perform` that wait for the outcomes of their mutations.
///
/// A call ends when the result of its mutation is known, or when the mutation has to wait for something other than its
/// turn. If another repository sends the mutation, the call also ends after a timeout; see ``CallTimeouts``.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationCalls<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Failure = RepositoryError<Source.Failure>

  /// The result of a call.
  typealias Outcome = Result<MutationResult, Failure>

  private let calls = PendingCalls<MutationID, Outcome>()
  private let timeouts: CallTimeouts

  init(_ timeouts: CallTimeouts) {
    self.timeouts = timeouts
  }

  /// Announces the call of a mutation, whose outcome may arrive from now on.
  func open(_ id: MutationID) { calls.open(id) }

  /// Forgets the call of a mutation, because the call will not wait.
  func close(_ id: MutationID) { calls.close(id) }

  /// Whether a mutation has a call without an outcome.
  func isOpen(_ id: MutationID) -> Bool { calls.isOpen(id) }

  /// Reserves a call for an outcome that is being prepared; see ``PendingCalls/claim(_:)``.
  func claim(_ id: MutationID) -> Bool { calls.claim(id) }

  /// Waits for the outcome of the call of a mutation.
  ///
  /// Cancelling the calling task ends the wait with ``RepositoryError/cancelled``, unless the call is claimed.
  func outcome(
    of id: MutationID, isolation: isolated (any Actor)? = #isolation
  ) async throws(Failure) -> MutationResult {
    try await calls.outcome(of: id, ifCancelled: .failure(.cancelled)).get()
  }

  /// Completes the call of a mutation, unless it has an outcome already.
  func end(_ id: MutationID, _ outcome: Outcome) { calls.end(id, outcome) }

  /// Completes the calls of mutations that have to wait for something other than their turn, with the result `queued`.
  ///
  /// - Parameter ids: The ids of the mutations, evaluated only if there are calls.
  func endQueued(_ ids: @autoclosure () -> [MutationID]) {
    if calls.isEmpty { return }
    for id in ids() { calls.end(id, .success(.queued)) }
  }

  // MARK: - Timeouts

  /// Starts the timeout of a call whose mutation another repository sends.
  func startTimeout(of id: MutationID, in engine: isolated Engine) {
    timeouts.add(id, ring: expiryAction(of: engine))
  }

  /// Ends the timeouts of the calls whose mutations meet a condition, because this repository sends these mutations
  /// now.
  func endTimeouts(in engine: isolated Engine, where isSentHere: (MutationID) -> Bool) {
    timeouts.removeAll(where: isSentHere, ring: expiryAction(of: engine))
  }

  /// Completes the calls whose timeout has passed, with the result `queued`.
  ///
  /// - Parameter deadline: The deadline that the action for the next timeout was called with. It doesn't limit which
  ///   calls are completed; see ``CallTimeouts/removeExpired(at:ring:)``.
  func endExpired(at deadline: Duration, in engine: isolated Engine) {
    for id in timeouts.removeExpired(at: deadline, ring: expiryAction(of: engine)) { calls.end(id, .success(.queued)) }
  }

  /// Returns the action for the next timeout: it completes the calls whose timeout has passed.
  private func expiryAction(of engine: Engine) -> @Sendable (Duration) async -> Void {
    { [weak engine] deadline in await engine?.endExpiredCalls(at: deadline) }
  }
}
