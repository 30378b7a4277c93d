internal import DataStore
internal import Multicast

/// Makes a repository the leader while it sends mutations; see ``Leadership``.
///
/// The repository attempts to lead once when it starts, at once when it adds a mutation, and repeatedly while a mutation
/// is due. It gives the lead up when nothing was sent for a while; see ``MutationSender``.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class Election<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>

  private let leadership: any Leadership
  private let collection: String
  private let store: any KeyValueStore
  private let clock: ElapsedClock
  private let events: RepositoryEvents
  /// The lease, while the repository leads.
  private var lease: (any LeadershipLease)?
  /// The number of leases so far.
  private var leaseCount = 0
  /// Signals that another attempt to lead is worthwhile.
  private var vacancies: MulticastStream<Void, Never>?
  private var isCampaigning = false
  /// Whether an attempt to lead is in progress, which may result in a lease.
  private(set) var isTrying = false
  /// Whether the lead is being given up.
  private var isResting = false
  /// The time at which the repository began to lead.
  private var leadingSince = Duration.zero
  /// The time before which the repository doesn't lead, so that another version of the program can.
  private var yieldsUntil = Duration.zero
  /// The number of failed attempts in a row.
  private var failureCount = 0
  /// The number of leases lost since ``LeadershipLease/isHeld()`` last returned `true`.
  private var lossCount = 0

  /// - Parameters:
  ///   - leadership: The rule that decides which repository leads.
  ///   - collection: The collection of the mutations.
  ///   - store: The store.
  ///   - clock: The clock that measures the waits between attempts.
  ///   - events: Receives the repository's events.
  init(
    _ leadership: any Leadership, _ collection: String, on store: any KeyValueStore, clock: ElapsedClock,
    events: RepositoryEvents
  ) {
    (self.leadership, self.collection, self.store) = (leadership, collection, store)
    (self.clock, self.events) = (clock, events)
  }

  /// The time for which a repository leads if there are mutations that it can't read.
  ///
  /// Another version of the program, which can read them, then gets its turn.
  private static var maximumTermWithHeldMutations: Duration { .seconds(1) }

  /// Whether this repository leads.
  var leads: Bool { lease != nil }

  /// Makes one attempt to lead, before the queue is read.
  func begin(in engine: isolated Engine) async {
    if engine.queue.isSuspended { return engine.queue.begin(as: .following) }
    engine.queue.begin(as: await tryToLead(in: engine))
  }

  /// Whether the repository must give the lead up, so that a version of the program can lead that can read the mutations
  /// that this one can't.
  func mustYield(in engine: isolated Engine) -> Bool {
    guard leads, engine.queue.holdsMutations else { return false }
    return clock.elapsed() - leadingSince >= Self.maximumTermWithHeldMutations
  }

  /// Gives the lead up unless a mutation is due or in flight.
  ///
  /// What the next leader has to know is stored before; see ``MutationWriter/storeStandings(in:)``.
  func rest(in engine: isolated Engine) async {
    guard leads, !isResting else { return }
    isResting = true
    defer { isResting = false }
    let (leaseCountBefore, yields) = (leaseCount, mustYield(in: engine))
    let mayRest = { (engine: isolated Engine) in
      engine.election.leads && engine.election.leaseCount == leaseCountBefore && engine.sender.attemptsInFlight == 0
        && (yields || engine.queue.isIdle(at: engine.moment.elapsed))
    }
    guard mayRest(engine) else { return engine.sender.pump(in: engine) }
    await engine.writer.storeStandings(in: engine)
    guard mayRest(engine) else { return engine.sender.pump(in: engine) }
    if yields { yieldsUntil = clock.elapsed() + leadership.retryInterval * 2 }
    release(in: engine)
  }

  /// Gives the lead up because the repository is suspended, even if an attempt goes on although it was cancelled.
  func surrender(in engine: isolated Engine) async {
    guard leads else { return }
    await engine.writer.storeStandings(in: engine)
    if leads, engine.queue.isSuspended { release(in: engine) }
  }

  private func release(in engine: isolated Engine) {
    lease = nil
    events.emit(.leadershipReleased)
    engine.queue.isLedElsewhere = false
    engine.performer.follow(in: engine)
  }

  /// Attempts to lead beside the addition of a mutation, so that it can be sent as soon as it is durable.
  ///
  /// - Returns: Whether this repository has a lease. It leads as soon as it has read the queue.
  func acquire(in engine: isolated Engine) async -> Bool {
    guard !leads, !isCampaigning, !engine.queue.isPaused, engine.sender.attemptsInFlight == 0,
      clock.elapsed() >= yieldsUntil
    else { return false }
    isCampaigning = true
    let status = await tryToLead(in: engine)
    guard status != .following else {
      isCampaigning = false
      return false
    }
    engine.start { engine in
      let hasBegun = await engine.election.beginLeading(as: status, in: engine)
      engine.election.isCampaigning = false
      if !hasBegun { engine.sender.pump(in: engine) }
    }
    return true
  }

  /// Reads the queue, and lets this repository send.
  ///
  /// - Returns: Whether it sends.
  private func beginLeading(as status: LeadershipStatus, in engine: isolated Engine) async -> Bool {
    do throws(StoreError) {
      // The store may not have reported the last changes of the previous leader yet.
      try await engine.reader.read(in: engine)
      // The lease may have been lost during the read.
      if status == .leading, !leads { return false }
      leadingSince = clock.elapsed()
      engine.queue.isLedElsewhere = false
      engine.performer.lead(as: status, in: engine)
      return true
    } catch {
      events.emit(.storeFailed(error))
      return false
    }
  }

  private func tryToLead(in engine: isolated Engine) async -> LeadershipStatus {
    isTrying = true
    let status = await tryToLead()
    isTrying = false
    engine.queue.isLedElsewhere = status == .following && failureCount == 0
    engine.suspension.recordStep()
    return status
  }

  private func tryToLead(isolation: isolated (any Actor)? = #isolation) async -> LeadershipStatus {
    if lease != nil { return .leading }
    do throws(StoreError) {
      let result = try await leadership.tryToLead(collection, on: store)
      failureCount = 0
      switch result {
      case .leading(let lease):
        self.lease = lease
        leaseCount += 1
        events.emit(.leadershipGained)
        return .leading
      case .following(let vacancies):
        self.vacancies = vacancies
        return .following
      case .independent: return .independent
      }
    } catch {
      events.emit(.storeFailed(error))
      failureCount += 1
      return .following
    }
  }

  /// Checks the lease, before a request and after a failed one.
  ///
  /// If the lease is lost, the repository follows from now on.
  ///
  /// - Returns: Whether the repository may send.
  func confirmLead(in engine: isolated Engine) async -> Bool {
    // Without a lease, only an independent repository sends.
    guard let lease else { return engine.queue.sends }
    let leaseCountBefore = leaseCount
    let isHeld = await lease.isHeld()
    // Another check may have found the loss meanwhile. A newer lease doesn't count, because this check wasn't about it.
    guard leaseCount == leaseCountBefore, self.lease != nil else { return false }
    if isHeld {
      lossCount = 0
      return true
    }
    lossCount += 1
    self.lease = nil
    events.emit(.leadershipLost)
    engine.performer.follow(in: engine)
    return false
  }

  /// Starts attempts to lead, which end when the repository sends or has nothing to send.
  func campaign(in engine: isolated Engine) {
    guard !isCampaigning else { return }
    isCampaigning = true
    engine.start { engine in await engine.election.runCampaign(in: engine) }
  }

  private func runCampaign(in engine: isolated Engine) async {
    defer { isCampaigning = false }
    // After one loss, tries at once, because the next lease may last. After further losses in a row, pauses first.
    if lossCount > 1 { await engine.backoff.wait(afterAttempt: lossCount - 1) }
    if yieldsUntil > clock.elapsed() { await clock.wait(until: yieldsUntil) }
    while !Task.isCancelled, engine.queue.needsLeader(at: clock.elapsed()) {
      // Subscribed before the attempt, so that no vacancy is missed.
      let subscription = vacancies?.subscribe()
      let isSubscribed = subscription != nil
      let status = await tryToLead(in: engine)
      if status != .following, await beginLeading(as: status, in: engine) { return }
      // Tries again at once with a subscription, because a vacancy may have been missed.
      if !isSubscribed, vacancies != nil { continue }
      let delay = failureCount == 0 ? .zero : engine.backoff.delay(forAttempt: failureCount)
      await clock.wait(until: clock.elapsed() + max(leadership.retryInterval, delay), or: subscription)
    }
  }
}
