internal import BenchmarkKit
internal import DataStore

/// The environment of every ``Row``: the options, and the workspace in which each run gets a ``Place``.
struct Environment: Sendable {
  let options: Options
  let workspace: Workspace

  /// Calls `body` with a place in which the initial values are stored.
  ///
  /// - Parameters:
  ///   - server: The server that has the initial values.
  ///   - keys: The keys of the values.
  func withPlace<Mutation, Result>(
    _ server: Server<Mutation>, keys: [String] = ["0"], _ body: (Place) async throws -> Result
  ) async throws -> Result where Mutation.Value: Codable {
    try await Place.with(options.store, in: workspace) { place in
      let store = place.makeStore()
      let batchSize = 500
      for start in stride(from: 0, to: keys.count, by: batchSize) {
        var batch = StoreBatch()
        for key in keys[start..<min(start + batchSize, keys.count)] {
          batch.save(server.value(of: key), for: StoreKey(server.collection, id: key))
        }
        try await store.commit(batch)
      }
      return try await body(place)
    }
  }

  /// Checks that the values stored in a place equal the server's.
  func check<Mutation>(
    _ place: Place, _ server: Server<Mutation>, keys: [String] = ["0"], _ label: String
  ) async throws where Mutation.Value: Codable & Equatable {
    let store = place.makeStore()
    for key in keys {
      let stored = try await store.load(StoreKey<Mutation.Value>(server.collection, id: key))
      guard stored?.value == server.value(of: key) else { throw BenchmarkError.wrongValue(system: label, key: key) }
    }
  }
}

extension RepositorySystem {
  /// Makes changes concurrently, so that several share a commit.
  ///
  /// - Parameter changesByTask: The changes of each task, which makes them in order.
  func perform(_ changesByTask: [[(key: String, mutation: Mutation)]]) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for changes in changesByTask {
        group.addTask {
          for (key, mutation) in changes { _ = try await perform(mutation, on: key) }
        }
      }
      try await group.waitForAll()
    }
  }
}
