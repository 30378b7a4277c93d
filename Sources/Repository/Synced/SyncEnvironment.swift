internal import Multicast

/// What a repository knows of the network and of the app, and what follows from it.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class SyncEnvironment<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>

  /// How long the mutations have when the network is back, before what is observed is fetched too.
  private static var sendingTime: Duration { .seconds(5) }

  private let network: any NetworkMonitor
  private let activity: any ActivityMonitor
  private let clock: ElapsedClock
  private let liveCounts: CurrentValueRelay<Int>
  private let events: RepositoryEvents
  /// What the monitor said last.
  private var status = NetworkStatus.unknown
  /// Whether the network is taken to be there.
  private var isOnline = true
  /// Counts what was learned of the network.
  private(set) var changeCount = 0

  init(
    _ configuration: RepositoryConfiguration, clock: ElapsedClock, liveCounts: CurrentValueRelay<Int>,
    events: RepositoryEvents
  ) {
    (network, activity) = (configuration.network, configuration.activity)
    (self.clock, self.liveCounts, self.events) = (clock, liveCounts, events)
  }

  /// Follows the monitors.
  func follow(in engine: isolated Engine) {
    engine.tasks.start { [weak engine, network] in
      for await status in network.statuses { await engine?.receive(status) }
    }
    engine.tasks.start { [weak engine, activity] in
      for await activity in activity.activities { await engine?.receive(activity) }
    }
  }

  /// Takes in what the network's monitor says.
  func receive(_ status: NetworkStatus, in engine: isolated Engine) {
    if status != self.status { events.emit(.networkChanged(status)) }
    let wasOffline = self.status == .offline
    self.status = status
    switch status {
    case .offline:
      changeCount += 1
      guard isOnline else { return }
      isOnline = false
      engine.queue.pause(in: engine)
      engine.observedLoading.setOnline(false, in: engine)
    case .online, .unknown:
      // An answer may have proved it before.
      if wasOffline { retryNow(in: engine) }
    }
  }

  /// Records that the server has answered a request, so that it can be reached, whatever the monitor says.
  ///
  /// - Parameters:
  ///   - count: The ``changeCount`` when the request began. One from before proves nothing.
  ///   - engine: The engine.
  func recordAnswer(toRequestAfter count: Int, in engine: isolated Engine) {
    if !isOnline, count == changeCount { reconnect(in: engine) }
  }

  /// Tries everything again, also while the monitor says that the network is away.
  func retryNow(in engine: isolated Engine) {
    if isOnline { engine.endWaits() } else { reconnect(in: engine) }
  }

  /// Sends mutations first, and then fetches what is observed.
  private func reconnect(in engine: isolated Engine) {
    isOnline = true
    changeCount += 1
    engine.queue.resume()
    engine.endWaits()
    engine.observedLoading.setOnline(false, in: engine)
    let change = changeCount
    engine.start { engine in await engine.environment.fetchObserved(afterChange: change, in: engine) }
  }

  /// Fetches what is observed, unless the network has gone or come again.
  private func fetchObserved(afterChange change: Int, in engine: isolated Engine) async {
    if engine.queue.canSend { await waitForMutations() }
    if change == changeCount { engine.observedLoading.setOnline(true, in: engine) }
  }

  private func waitForMutations(isolation: isolated (any Actor)? = #isolation) async {
    if liveCounts.value == 0 { return }
    await clock.wait(until: clock.elapsed() + Self.sendingTime) { [counts = liveCounts.stream] in
      for await count in counts where count == 0 { return }
    }
  }
}
