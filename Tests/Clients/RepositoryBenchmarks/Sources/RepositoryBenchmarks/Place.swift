internal import BenchmarkKit
internal import DataStore
internal import Foundation

/// The kind of store that all compared systems use in one execution of the program.
enum StoreKind: String, CaseIterable, Codable, Sendable {
  case files, memory
}

/// The storage of one run; a second store in the same place simulates a relaunch.
enum Place: Sendable {
  case folder(URL)
  case memory(InMemoryStorage)

  /// Creates a store that has not read the contents of the place yet.
  func makeStore() -> any KeyValueStore {
    switch self {
    case .folder(let folder): FileStore(folder: folder.appending(path: "store", directoryHint: .isDirectory))
    case .memory(let storage): InMemoryStore(storage: storage)
    }
  }

  /// Calls `body` with an empty place.
  static func with<Result>(
    _ kind: StoreKind, in workspace: Workspace, _ body: (Place) async throws -> Result
  ) async throws -> Result {
    switch kind {
    case .files: try await workspace.withFolder { try await body(.folder($0)) }
    case .memory: try await body(.memory(InMemoryStorage()))
    }
  }
}
