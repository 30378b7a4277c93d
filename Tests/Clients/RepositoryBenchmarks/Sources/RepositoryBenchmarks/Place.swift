internal import BenchmarkKit
internal import DataStore
internal import Foundation

/// The kind of store that all compared systems use in one execution of the program.
enum StoreKind: String, CaseIterable, Codable, Sendable {
  case files, memory, sqlite, postgresql
}

/// The storage of one run; a second store in the same place simulates a relaunch.
enum Place: Sendable {
  case folder(URL)
  case memory(InMemoryStorage)
  case database(URL)
  /// A server, with its address.
  case server(String)

  private static let serverVariable = "MOMENTS_POSTGRESQL"

  /// The address of the server of ``StoreKind/postgresql``, whose tables the runs empty.
  private static var serverAddress: String? { ProcessInfo.processInfo.environment[serverVariable] }

  /// Creates a store that has not read the contents of the place yet.
  func makeStore() -> any KeyValueStore {
    switch self {
    case .folder(let folder): FileStore(folder: folder.appending(path: "store", directoryHint: .isDirectory))
    case .memory(let storage): InMemoryStore(storage: storage)
    case .database(let folder): SQLiteStore(file: folder.appending(path: "store.sqlite", directoryHint: .notDirectory))
    case .server(let address): PostgreSQLStore(address: address)
    }
  }

  /// Returns an empty place of a kind, in an empty folder if it is on this machine's disk.
  static func empty(_ kind: StoreKind, in folder: URL) async throws -> Place {
    switch kind {
    case .files: return .folder(folder)
    case .memory: return .memory(InMemoryStorage())
    case .sqlite: return .database(folder)
    case .postgresql:
      guard let serverAddress else { throw BenchmarkError.usage("--store postgresql needs \(serverVariable)") }
      try await PostgreSQLStore(address: serverAddress).erase { _ in true }
      return .server(serverAddress)
    }
  }

  /// Calls `body` with an empty place.
  static func with<Result>(
    _ kind: StoreKind, in workspace: Workspace, _ body: (Place) async throws -> Result
  ) async throws -> Result {
    try await workspace.withFolder { try await body(.empty(kind, in: $0)) }
  }
}
