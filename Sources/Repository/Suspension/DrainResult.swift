public import DataStore
public import Foundation

/// The result of ``SyncedRepository/drain(within:)``.
public enum DrainResult: Hashable, Sendable {
  /// No mutation is waiting or in flight.
  ///
  /// Mutations that were refused or are in conflict may be left.
  case empty

  /// The time was over, or the repository was suspended or the calling task cancelled before.
  ///
  /// The associated number of mutations is left, or 0 if there was no time to read the queue.
  case remaining(Int)

  /// The mutations that are left can't be sent now, for the associated reason.
  case paused(PauseReason)
}

/// The reason why no mutation can be sent now.
///
/// If several reasons apply, the first of them in the order of the cases is named.
public enum PauseReason: Hashable, Sendable {
  /// The store can't be read, for example because the device is locked.
  case store(StoreError)

  /// The network is unavailable; see ``RepositoryConfiguration/network``.
  case offline

  /// The next attempt follows a failed one, and begins at the associated time.
  case backingOff(until: Date)

  /// A user has to sign in; see ``SyncedRepository/credentialsChanged(userID:)``.
  case needsSignIn

  /// Only mutations are left that another version of the program must send, or others wait for these.
  ///
  /// The associated number is that of the mutations that this version can't read, or whose values it can't read; see
  /// ``PendingMutations/unreadable()``.
  case unreadable(Int)

  /// Another repository leads and has not sent all mutations in time; see ``Leadership``.
  case sentElsewhere
}
