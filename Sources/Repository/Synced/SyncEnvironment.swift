internal import Multicast

/// A repository's view of the network and of the app, and its reactions to changes.
///
/// Belongs to one ``SyncEngine`` and is only used in its isolation.
final class SyncEnvironment<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>

  /// The maximum time by which a reconnection delays the fetches of observed values, so that mutations are sent first.
  private static var maximumSendingTime: Duration { .seconds(5) }

  private let network: any NetworkMonitor
  private let activity: any ActivityMonitor
  private let clock: ElapsedClock
  /// The number of mutations that are waiting or in flight; see ``SyncEngine/liveCounts``.
  private let liveCounts: CurrentValueRelay<Int>
  private let events: RepositoryEvents
  /// The last status that the monitor reported.
  private var status = NetworkStatus.unknown
  /// Whether the network is considered available.
  private var isOnline = true
  /// A number that grows with each status `offline` and each reconnection.
  private(set) var changeCount = 0

  init(
    _ configuration: RepositoryConfiguration, clock: ElapsedClock, liveCounts: CurrentValueRelay<Int>,
    events: RepositoryEvents
  ) {
    (network, activity) = (configuration.network, configuration.activity)
    (self.clock, self.liveCounts, self.events) = (clock, liveCounts, events)
  }

  /// Starts observing the monitors.
  func observe(in engine: isolated Engine) {
    engine.tasks.start { [weak engine, network] in
      for await status in network.statuses { await engine?.receive(status) }
    }
    engine.tasks.start { [weak engine, activity] in
      for await activity in activity.activities { await engine?.receive(activity) }
    }
  }

  /// Receives a status from the network monitor.
  func receive(_ status: NetworkStatus, in engine: isolated Engine) {
    if status != self.status { events.emit(.networkChanged(status)) }
    let wasOffline = self.status == .offline
    self.status = status
    switch status {
    case .offline:
      changeCount += 1
      guard isOnline else { return }
      isOnline = false
      engine.performer.pause(.offline, in: engine)
      engine.observedLoading.setOnline(false, in: engine)
    case .online, .unknown:
      // Reconnects even if an answer or a retry has set `isOnline` before, because fetches may have failed since.
      if wasOffline { reconnect(isDelayed: true, in: engine) }
    }
  }

  /// Records that the server has answered a request, so the network is available even if the monitor reports otherwise.
  ///
  /// - Parameters:
  ///   - count: The ``changeCount`` when the request began. If it has grown since, the answer proves nothing.
  ///   - engine: The engine.
  func recordAnswer(toRequestAfter count: Int, in engine: isolated Engine) {
    if !isOnline, count == changeCount { reconnect(isDelayed: false, in: engine) }
  }

  /// Ends the backoff delays, except those that a server requested, and sends the mutations that are due.
  ///
  /// If the network counts as unavailable, also fetches observed values once the mutations have been sent. From now on,
  /// the network counts as available until the monitor reports `offline` again.
  func retryNow(in engine: isolated Engine) {
    if isOnline { engine.endWaits() } else { reconnect(isDelayed: false, in: engine) }
  }

  /// Considers the network available: sends mutations first, and then fetches observed values.
  ///
  /// - Parameters:
  ///   - isDelayed: Whether the fetches are delayed at random, because other devices may have noticed the network now
  ///     too. They aren't if a call of this repository has caused them.
  ///   - engine: The engine.
  private func reconnect(isDelayed: Bool, in engine: isolated Engine) {
    isOnline = true
    changeCount += 1
    engine.queue.resume(.offline)
    engine.endWaits()
    // No observed values are fetched until the mutations have been sent.
    engine.observedLoading.setOnline(false, in: engine)
    let count = changeCount
    engine.start { engine in
      await engine.environment.fetchObserved(isDelayed: isDelayed, unlessChangedSince: count, in: engine)
    }
  }

  /// Waits for mutations to be sent, and then fetches observed values, unless the network's availability has changed in
  /// the meantime.
  private func fetchObserved(isDelayed: Bool, unlessChangedSince count: Int, in engine: isolated Engine) async {
    if engine.queue.hasMutationsToSend { await waitForMutations() }
    if count == changeCount { engine.observedLoading.setOnline(true, isDelayed: isDelayed, in: engine) }
  }

  private func waitForMutations(isolation: isolated (any Actor)? = #isolation) async {
    if liveCounts.value == 0 { return }
    await clock.wait(until: clock.elapsed() + Self.maximumSendingTime) { [counts = liveCounts.stream] in
      for await count in counts where count == 0 { return }
    }
  }
}
