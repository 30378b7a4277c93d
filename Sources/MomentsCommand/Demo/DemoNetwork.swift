internal import DataStore
internal import MomentsTesting
internal import Multicast

/// The network of the demonstration.
///
/// The network's state survives a restart of the program if the network has a store.
struct DemoNetwork: NetworkSwitch {
  private static let key = StoreKey<Bool>("demo-network-is-online")

  private let backend: DemonstrationServer
  private let store: FileStore?
  private let onlineStates = CurrentValueRelay(true)

  /// - Parameter store: The store of the network's state; `nil` for a network that is online at each start.
  init(of backend: DemonstrationServer, store: FileStore?) {
    self.backend = backend
    self.store = store
  }

  /// Whether the network of this process is online.
  var isOnline: Bool { onlineStates.value }

  /// Restores the last state of the network, and returns whether the network is online.
  ///
  /// A network that was never switched is online.
  @discardableResult
  func restore() async throws(StoreError) -> Bool {
    let isOnline = try await store?.load(Self.key)?.value ?? true
    await backend.setOnline(isOnline)
    onlineStates.send(isOnline)
    return isOnline
  }

  func setOnline(_ isOnline: Bool) async throws(StoreError) {
    await backend.setOnline(isOnline)
    onlineStates.send(isOnline)
    try await store?.save(isOnline, for: Self.key)
  }
}

extension DemonstrationServer: NetworkSwitch {}
