internal import DataStore
internal import Multicast

extension SyncEngine {
  /// Makes one attempt to lead, before the queue is read.
  func beginLeadership() async {
    let status = core.queue.isSuspended ? .following : await tryToLead()
    core.queue.begin(as: status)
  }

  private func tryToLead() async -> LeadershipStatus {
    core.lead.beginTrying()
    let status = await currentStatus()
    update { $0.endTryingToLead(status) }
    return status ?? .following
  }

  /// The status after an attempt to lead; `nil` if the attempt failed.
  private func currentStatus() async -> LeadershipStatus? {
    if lease != nil { return .leading }
    do throws(StoreError) {
      switch try await configuration.leadership.tryToLead(recordKeys.collection, on: store) {
      case .leading(let lease):
        self.lease = lease
        events.emit(.leadershipGained)
        return .leading
      case .following(let vacancies):
        self.vacancies = vacancies
        return .following
      case .independent: return .independent
      }
    } catch {
      events.emit(.storeFailed(error))
      return nil
    }
  }

  /// Attempts to lead beside the addition of a mutation, so that it can be sent as soon as it is durable.
  ///
  /// - Returns: Whether this repository has a lease. It leads as soon as it has read the queue.
  func acquireLead() async -> Bool {
    guard !core.lead.isHeld, !core.lead.isCampaigning, !core.queue.isPaused, core.attempts.isEmpty,
      clock.elapsed() >= core.lead.yieldsUntil
    else { return false }
    core.lead.isCampaigning = true
    let status = await tryToLead()
    guard status != .following else {
      core.lead.isCampaigning = false
      return false
    }
    start { engine in await engine.endAcquiring(as: status) }
    return true
  }

  private func endAcquiring(as status: LeadershipStatus) async {
    _ = await beginSending(as: status)
    update { $0.lead.isCampaigning = false }
  }

  /// Reads the queue, and lets this repository send.
  ///
  /// - Returns: Whether it sends.
  private func beginSending(as status: LeadershipStatus) async -> Bool {
    do throws(StoreError) {
      // The store may not have reported the last changes of the previous leader yet.
      try await readQueue()
      // The lease may have been lost during the read.
      if status == .leading, !core.lead.isHeld { return false }
      update { $0.beginSending(as: status) }
      return true
    } catch {
      events.emit(.storeFailed(error))
      return false
    }
  }

  /// Checks the lease, before a request and after a failed one.
  ///
  /// If the lease is lost, the repository follows from now on.
  ///
  /// - Returns: Whether the repository may send.
  func confirmLead() async -> Bool {
    // Without a lease, only an independent repository sends.
    guard let lease else { return core.queue.sends }
    let leaseCount = core.lead.leaseCount
    let isHeld = await lease.isHeld()
    // Another check may have found the loss meanwhile. A newer lease doesn't count, because this check wasn't about it.
    guard core.lead.leaseCount == leaseCount, self.lease != nil else { return false }
    if isHeld {
      core.lead.confirm()
      return true
    }
    self.lease = nil
    update { $0.loseLead() }
    return false
  }

  /// Gives the lead up unless a mutation is due or in flight.
  ///
  /// What the next leader has to know is stored before; see ``storeStandings()``.
  func rest() async {
    defer { update { $0.lead.isResting = false } }
    let (lease, yields) = update { ($0.lead.leaseCount, $0.mustYield) }
    guard update({ $0.mayRest(lease, yields: yields) }) else { return }
    await storeStandings()
    guard update({ $0.mayRest(lease, yields: yields) }) else { return }
    self.lease = nil
    update { $0.releaseLead(yields: yields) }
  }

  /// Gives the lead up because the repository is suspended, even if an attempt goes on although it was cancelled.
  func surrenderLead() async {
    guard core.lead.isHeld else { return }
    await storeStandings()
    guard core.lead.isHeld, core.queue.isSuspended else { return }
    lease = nil
    update { $0.releaseLead(yields: false) }
  }

  /// Attempts to lead until the repository sends or has nothing to send.
  func campaign() async {
    defer { update { $0.lead.isCampaigning = false } }
    // After one loss, tries at once, because the next lease may last. After further losses in a row, pauses first.
    if core.lead.lossCount > 1 { await wait(afterAttempt: core.lead.lossCount - 1) }
    if core.lead.yieldsUntil > clock.elapsed() { await clock.wait(until: core.lead.yieldsUntil) }
    while !Task.isCancelled, core.queue.needsLeader(at: clock.elapsed()) {
      // Subscribed before the attempt, so that no vacancy is missed.
      let subscription = vacancies?.subscribe()
      let isSubscribed = subscription != nil
      let status = await tryToLead()
      if status != .following, await beginSending(as: status) { return }
      // Tries again at once with a subscription, because a vacancy may have been missed.
      if !isSubscribed, vacancies != nil { continue }
      let failures = core.lead.failureCount
      let delay = failures == 0 ? .zero : core.delay(forAttempt: failures)
      await clock.wait(
        until: clock.elapsed() + max(configuration.leadership.retryInterval, delay), or: subscription)
    }
  }
}
