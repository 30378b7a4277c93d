/// The result of ``SyncedRepository/perform(_:on:)``.
public enum MutationResult: Hashable, Sendable {
  /// The server has applied the mutation, and the stored value, if there is one, includes it.
  case confirmed

  /// The mutation is durable and visible, and will be sent, after a relaunch if necessary. The server can't be reached,
  /// asked for a later attempt, or requires the user to sign in again. Or the server has the mutation, but its reply
  /// can't be used or stored yet.
  ///
  /// Also returned if another repository sends the mutation and either doesn't report a result within ten seconds, or
  /// reports that the mutation was refused. A refused mutation is rolled back, and listed as
  /// ``PendingMutation/Standing/refused(reason:)``.
  case queued

  /// The mutation isn't possible on the server's current value, or on a newer stored value. It has no effect, and waits
  /// for ``PendingMutations/resolve(_:_:)``.
  case conflicted(MutationID)
}
