import DataStore
import MomentsTesting
import TestSupport
import Testing

@testable import MomentsCommand

struct DemoNetworkTests {
  @Test func `The state of the network is restored when the program starts again`() async throws {
    let folder = TemporaryFolder()
    func simulateStart() async throws -> (network: DemoNetwork, startsOnline: Bool, backend: DemonstrationServer) {
      let backend = DemonstrationServer()
      let network = DemoNetwork(of: backend, store: FileStore(folder: folder.url))
      return (network, try await network.restore(), backend)
    }

    let first = try await simulateStart()
    #expect(first.startsOnline)
    try await first.network.setOnline(false)
    #expect(await !first.backend.isOnline)

    let second = try await simulateStart()
    #expect(!second.startsOnline)
    #expect(await !second.backend.isOnline)
    try await second.network.setOnline(true)
    #expect(try await simulateStart().startsOnline)
  }
}
