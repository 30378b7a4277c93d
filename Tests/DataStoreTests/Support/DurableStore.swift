import DataStore
import Foundation

/// The stores that other processes may use at the same time, and that survive what becomes of a process.
enum DurableStore: CaseIterable {
  case files
  #if SQLite
    case database
  #endif

  /// Where a test keeps its store, as `TestChild` knows it too.
  func place(in temporary: TemporaryFolder) -> URL {
    switch self {
    case .files: temporary.url
    #if SQLite
      case .database: temporary.url.appending(path: "store.sqlite")
    #endif
    }
  }

  func open(in temporary: TemporaryFolder) -> any KeyValueStore {
    let place = place(in: temporary)
    switch self {
    case .files: return FileStore(folder: place)
    #if SQLite
      case .database: return SQLiteStore(file: place, busyTimeout: .seconds(60))
    #endif
    }
  }
}
