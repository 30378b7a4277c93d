/// The result of ``SyncedRepository/perform(_:on:)``.
public enum MutationResult: Hashable, Sendable {
  /// The server has applied the mutation, and the stored value, if there is one, includes it.
  ///
  /// There is one exception: if the server refuses to return the value, a mutation that isn't possible on the stored
  /// value is confirmed without being included.
  case confirmed

  /// The mutation is durable and visible, but not confirmed yet.
  ///
  /// The server can't be reached, asked for a later attempt, or requires the user to sign in again. The mutation is
  /// then sent later, after a relaunch if necessary. Or the server has the mutation, but its reply can't be used or
  /// stored yet.
  ///
  /// Also returned if another repository sends the mutation and doesn't report a result within ten seconds, or if the
  /// mutation is refused and this repository doesn't have the server's error. A refused mutation is rolled back, and
  /// listed as ``PendingMutation/Standing/refused(reason:)``.
  case queued

  /// The mutation isn't possible on the server's current value, or on a value that was stored after the mutation was
  /// made.
  ///
  /// It has no effect, and waits for ``PendingMutations/resolve(_:_:)``.
  case conflicted(MutationID)
}
