/// The result of ``SyncedRepository/perform(_:on:)``.
public enum MutationResult: Hashable, Sendable {
  /// The server has applied the mutation, and the stored value, if there is one, includes it.
  ///
  /// There is one exception: if the server refuses to return the value, and the mutation isn't possible on the stored
  /// value, the stored value doesn't include the mutation.
  case confirmed

  /// The mutation is durable and visible, but not confirmed yet.
  ///
  /// The server can't be reached, asked for a later attempt, or requires the user to sign in again. The mutation is
  /// then sent later, after a relaunch if necessary. Or the server has the mutation, but its reply can't be used or
  /// stored yet.
  ///
  /// Also returned if another repository sends the mutation and doesn't report a result within ten seconds.
  ///
  /// There is one exception: a refused mutation is also reported as queued if this repository has no server error to
  /// throw. It is rolled back, and listed as ``PendingMutation/Standing/refused(reason:)``.
  case queued

  /// The mutation isn't possible on the server's current value, or on a value that was stored after the mutation was
  /// made.
  ///
  /// It has no effect, and waits for ``PendingMutations/resolve(_:_:)``.
  case conflicted(MutationID)
}
