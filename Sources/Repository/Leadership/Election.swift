internal import DataStore
internal import Multicast

/// Lets a repository lead as soon as it can, if there is something to send; see ``Leadership``.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class Election<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>

  private let leadership: any Leadership
  private let name: String
  private let store: any KeyValueStore
  private let clock: ElapsedClock
  private let events: RepositoryEvents
  /// What the repository leads with.
  private var lease: (any LeadershipLease)?
  /// Counts the leases.
  private var leaseCount = 0
  /// When it is worth trying again.
  private var vacancies: MulticastStream<Void, Never>?
  private var isCampaigning = false
  /// The number of attempts in a row that failed.
  private var failures = 0

  /// - Parameters:
  ///   - leadership: Decides which repository leads.
  ///   - name: The collection of the mutations.
  ///   - store: The store.
  ///   - clock: Measures the waits between attempts.
  ///   - events: Where to report what happens.
  init(
    _ leadership: any Leadership, _ name: String, on store: any KeyValueStore, clock: ElapsedClock,
    events: RepositoryEvents
  ) {
    (self.leadership, self.name, self.store) = (leadership, name, store)
    (self.clock, self.events) = (clock, events)
  }

  /// Tries once to lead, before the queue is read.
  func begin(in engine: isolated Engine) async {
    engine.queue.begin(as: await tryToLead())
  }

  private func tryToLead(isolation: isolated (any Actor)? = #isolation) async -> LeadershipStatus {
    if lease != nil { return .leading }
    do throws(StoreError) {
      let result = try await leadership.tryToLead(name, on: store)
      failures = 0
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
      failures += 1
      return .following
    }
  }

  /// Follows from now on if this repository has lost its lease.
  ///
  /// - Returns: Whether it may send.
  func confirmLead(in engine: isolated Engine) async -> Bool {
    guard let lease else { return engine.queue.sends }
    let count = leaseCount
    if await lease.isHeld() { return leaseCount == count && self.lease != nil }
    guard leaseCount == count, self.lease != nil else { return false }
    self.lease = nil
    events.emit(.leadershipLost)
    engine.queue.follow(in: engine)
    return false
  }

  /// Tries to lead until this repository does, or nothing is to be sent.
  func campaign(in engine: isolated Engine) {
    guard !isCampaigning else { return }
    isCampaigning = true
    engine.start { engine in await engine.election.run(in: engine) }
  }

  private func run(in engine: isolated Engine) async {
    defer { isCampaigning = false }
    while !Task.isCancelled, engine.queue.needsLeader {
      // Before the attempt, so that no vacancy is missed.
      let vacancies = vacancies?.subscribe()
      let isFirst = vacancies == nil
      let status = await tryToLead()
      if status != .following {
        do throws(StoreError) {
          // What the last leader did may not be reported yet.
          try await engine.queue.read(in: engine)
          return engine.queue.lead(as: status, in: engine)
        } catch {
          events.emit(.storeFailed(error))
        }
      }
      if isFirst, self.vacancies != nil { continue }
      let delay = failures == 0 ? .zero : engine.backoff.delay(forAttempt: failures)
      await clock.wait(until: clock.elapsed() + max(leadership.retryInterval, delay), or: vacancies)
    }
  }
}
