internal import DataStore
internal import Multicast

/// Attempts to make a repository the leader: once when it starts, and repeatedly while it has mutations to send; see
/// ``Leadership``.
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

  /// Makes one attempt to lead, before the queue is read.
  func begin(in engine: isolated Engine) async {
    engine.queue.begin(as: await tryToLead())
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
    engine.queue.follow(in: engine)
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
    while !Task.isCancelled, engine.queue.needsLeader {
      // Subscribed before the attempt, so that no vacancy is missed.
      let subscription = vacancies?.subscribe()
      let isSubscribed = subscription != nil
      let status = await tryToLead()
      if status != .following {
        do throws(StoreError) {
          // The store may not have reported the last changes of the previous leader yet.
          try await engine.reader.read(in: engine)
          return engine.queue.lead(as: status, in: engine)
        } catch {
          events.emit(.storeFailed(error))
        }
      }
      // Tries again at once with a subscription, because a vacancy may have been missed.
      if !isSubscribed, vacancies != nil { continue }
      let delay = failureCount == 0 ? .zero : engine.backoff.delay(forAttempt: failureCount)
      await clock.wait(until: clock.elapsed() + max(leadership.retryInterval, delay), or: subscription)
    }
  }
}
