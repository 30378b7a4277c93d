/// Whether a repository leads, and when it attempts to; see ``Leadership``.
///
/// A value that decides. The repository attempts to lead once when it starts, at once when it adds a mutation, and
/// repeatedly while a mutation is due. It gives the lead up when nothing was sent for a while.
struct Lead {
  /// The time without attempts after which a repository gives the lead up.
  ///
  /// Changes often come in series, and leading again takes some time. A system may end a process that holds a lock
  /// while it is suspended, so the time is short.
  static var linger: Duration { .milliseconds(250) }

  /// The time for which a repository leads if there are mutations that it can't read.
  ///
  /// Another version of the program, which can read them, then gets its turn.
  private static var maximumTermWithHeldMutations: Duration { .seconds(1) }

  /// Whether the repository has a lease.
  private(set) var isHeld = false
  /// The number of leases so far.
  private(set) var leaseCount = 0
  /// Whether the repository repeats its attempts, or begins to lead.
  var isCampaigning = false
  /// Whether an attempt to lead is in progress, which may result in a lease.
  private(set) var isTrying = false
  /// Whether the lead is being given up.
  var isResting = false
  /// The time at which the repository gives the lead up unless something is sent.
  var restsAt: Duration?
  /// The time at which the repository got the lease.
  private var leadingSince = Duration.zero
  /// The time before which the repository doesn't lead, so that another version of the program can.
  private(set) var yieldsUntil = Duration.zero
  /// The number of failed attempts in a row.
  private(set) var failureCount = 0
  /// The number of leases lost since one was last confirmed.
  private(set) var lossCount = 0

  mutating func beginTrying() { isTrying = true }

  /// Records the result of an attempt to lead; `nil` if it failed.
  mutating func endTrying(_ status: LeadershipStatus?, at now: Duration) {
    isTrying = false
    failureCount = status == nil ? failureCount + 1 : 0
    guard status == .leading, !isHeld else { return }
    (isHeld, leaseCount, leadingSince) = (true, leaseCount + 1, now)
  }

  mutating func confirm() { lossCount = 0 }

  mutating func lose() { (isHeld, lossCount) = (false, lossCount + 1) }

  /// Gives the lead up.
  ///
  /// - Parameters:
  ///   - interval: The time for which it isn't taken again, if another version of the program should lead.
  ///   - now: The present time.
  mutating func release(yieldingFor interval: Duration?, at now: Duration) {
    isHeld = false
    if let interval { yieldsUntil = now + interval }
  }

  /// Whether the repository has led for so long that a version of the program should lead that can read the mutations
  /// that this one can't.
  func isOverdue(at now: Duration) -> Bool { isHeld && now - leadingSince >= Self.maximumTermWithHeldMutations }
}
