/// The policy for a user's unsent mutations at sign-out; see ``SyncedRepository/signOut(userID:unsent:)``.
///
/// A mutation is unsent if it is in the queue and wasn't refused: it waits, is in flight, needs a sign-in or is in
/// conflict; see ``PendingMutation/Standing``. A stored mutation that this program can't decode counts too, even one
/// whose bytes are quarantined, because the server may lack it. A read-only repository doesn't know the standing of the
/// mutations in its store, so it counts all of the user's, including refused ones.
///
/// A sign-out that fails because of unsent mutations throws ``SignOutError/unsent(_:)``, and the user stays signed in.
public enum UnsentPolicy: Hashable, Sendable {
  /// Fails the sign-out if there are unsent mutations, without waiting for them.
  case refuse

  /// Waits for the mutations to be sent, and fails the sign-out if some are unsent when the wait ends.
  ///
  /// First, all backoff delays end, except those that the server requested. The wait ends after the given time at most.
  ///
  /// The wait ends earlier when no mutation of the user waits, is in flight or needs a sign-in. Mutations in conflict
  /// aren't waited for. A read-only repository doesn't wait, because it sends nothing. Cancelling the calling task ends
  /// the wait with ``SignOutError/cancelled``.
  case send(within: Duration)

  /// Discards the unsent mutations.
  ///
  /// The server may still apply one that is in flight.
  case discard
}
