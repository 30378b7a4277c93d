internal import DataStore
internal import MomentsTesting
internal import Multicast

/// The demonstration's network, which is as it was left when the program is started again.
struct DemoNetwork: NetworkSwitch {
  private static let key = StoreKey<Bool>("demo-network-is-online")

  private let backend: DemonstrationServer
  private let store: FileStore?
  private let states = CurrentValueRelay(true)

  /// - Parameter store: Where the state is kept; `nil` for a network that is there at each start.
  init(of backend: DemonstrationServer, store: FileStore?) {
    self.backend = backend
    self.store = store
  }

  /// Whether this process has the network.
  var isOnline: Bool { states.value }

  /// Restores the network's last state and returns it; online if it was never switched.
  @discardableResult
  func restore() async throws(StoreError) -> Bool {
    let isOnline = try await store?.load(Self.key)?.value ?? true
    await backend.setOnline(isOnline)
    states.send(isOnline)
    return isOnline
  }

  func setOnline(_ isOnline: Bool) async throws(StoreError) {
    await backend.setOnline(isOnline)
    states.send(isOnline)
    try await store?.save(isOnline, for: Self.key)
  }
}

extension DemonstrationServer: NetworkSwitch {}
