/// What becomes of the mutations of a user who signs out that the server doesn't have; see
/// ``SyncedRepository/signOut(userID:unsent:)``.
///
/// Those that are in conflict count, and those that the server has refused don't.
public enum UnsentPolicy: Hashable, Sendable {
  /// The user isn't signed out if there are any.
  case refuse

  /// They have some time to be sent. The user isn't signed out if some are left then.
  case send(within: Duration)

  /// They are lost.
  case discard
}
