/// The policy for a user's unsent mutations at sign-out; see ``SyncedRepository/signOut(userID:unsent:)``.
///
/// A mutation is unsent if the server doesn't have it. Mutations in conflict count, and refused ones don't. Stored
/// mutations that this program can't decode count too, because a newer program may still send them. In a repository that
/// sends no mutations, all stored ones count.
public enum UnsentPolicy: Hashable, Sendable {
  /// The sign-out fails if there are unsent mutations.
  case refuse

  /// The mutations are sent within a time limit. The sign-out fails if some are left after it.
  case send(within: Duration)

  /// The unsent mutations are discarded.
  case discard
}
