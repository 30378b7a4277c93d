import RepositoryTesting

/// The code of `RepositoryTesting.md`, copied unchanged so that the compiler checks it.
enum RepositoryTestingExamples {
  static func firstExample(print: @escaping Print) async throws {
    let network = SimulatedNetwork(seed: 1)
    let delivery = Task { await network.run() }
    print(try await network.exchange("greet") { "Hello, client." })
    delivery.cancel()
  }
}
