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
  private var isOnline = true
  /// Counts the changes of ``isOnline``.
  private var changeCount = 0

  init(_ configuration: RepositoryConfiguration, clock: ElapsedClock, liveCounts: CurrentValueRelay<Int>) {
    (network, activity) = (configuration.network, configuration.activity)
    (self.clock, self.liveCounts) = (clock, liveCounts)
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
    switch status {
    case .offline:
      guard isOnline else { return }
      (isOnline, changeCount) = (false, changeCount + 1)
      engine.queue.pause()
      engine.observedLoading.setOnline(false, in: engine)
    case .online, .unknown: if !isOnline { recordAnswer(in: engine) }
    }
  }

  /// Records that the server can be reached, whatever the monitor says: what waits for that need not wait longer.
  ///
  /// Mutations are sent first, and then what is observed is fetched.
  func recordAnswer(in engine: isolated Engine) {
    engine.retryNow()
    guard !isOnline else { return }
    (isOnline, changeCount) = (true, changeCount + 1)
    let change = changeCount
    engine.start { engine in await engine.environment.fetchObserved(afterChange: change, in: engine) }
  }

  /// Fetches what is observed, unless the network has gone or come again.
  private func fetchObserved(afterChange change: Int, in engine: isolated Engine) async {
    await waitForMutations()
    if change == changeCount { engine.observedLoading.setOnline(true, in: engine) }
  }

  private func waitForMutations(isolation: isolated (any Actor)? = #isolation) async {
    if liveCounts.value == 0 { return }
    let deadline = clock.elapsed() + Self.sendingTime
    await withTaskGroup { group in
      group.addTask { [clock] in
        // Cancelled when all is sent, or when the repository is released.
        do { try await clock.sleep(deadline) } catch {}
      }
      group.addTask { [counts = liveCounts.stream] in
        for await count in counts where count == 0 { return }
      }
      await group.next()
      group.cancelAll()
    }
  }
}
