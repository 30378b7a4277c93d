import DataStore
import MomentsTesting
import TestSupport
import Testing

@testable import MomentsCommand

struct DemoNetworkTests {
  @Test func `The state of the network is restored when the program starts again`() async throws {
    let folder = TemporaryFolder()
    func start() async throws -> (network: DemoNetwork, isOnline: Bool, backend: DemonstrationServer) {
      let backend = DemonstrationServer()
      let network = DemoNetwork(of: backend, store: FileStore(folder: folder.url))
      return (network, try await network.restore(), backend)
    }

    let first = try await start()
    #expect(first.isOnline)
    try await first.network.setOnline(false)
    #expect(await !first.backend.isOnline)

    let second = try await start()
    #expect(!second.isOnline)
    #expect(await !second.backend.isOnline)
    try await second.network.setOnline(true)
    #expect(try await start().isOnline)
  }
}
