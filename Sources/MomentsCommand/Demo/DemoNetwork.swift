internal import DataStore

/// The demonstration's network, which is as it was left when the program is started again.
struct DemoNetwork: NetworkSwitch {
  private static let key = StoreKey<Bool>("demo-network-is-online")

  private let backend: DemoBackend
  private let store: FileStore

  init(of backend: DemoBackend, store: FileStore) {
    self.backend = backend
    self.store = store
  }

  /// Restores the network's last state and returns it; online if it was never switched.
  func restore() async throws(StoreError) -> Bool {
    let isOnline = try await store.load(Self.key)?.value ?? true
    await backend.setOnline(isOnline)
    return isOnline
  }

  func setOnline(_ isOnline: Bool) async throws(StoreError) {
    await backend.setOnline(isOnline)
    try await store.save(isOnline, for: Self.key)
  }
}
