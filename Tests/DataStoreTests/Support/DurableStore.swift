import DataStore
import Foundation
import TestSupport

/// A kind of store whose files several processes may use at the same time, and whose values survive `SIGKILL`.
enum DurableStore: CaseIterable {
  case files
  #if SQLite
    case database
  #endif

  /// Returns the place of a test's store, as `TestChild` expects it.
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
