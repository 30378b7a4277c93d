import DataStore
import Foundation

extension DurableStore {
  /// Returns the place of a test's store in a folder: the folder itself, or a database file in it.
  func place(inFolder folder: URL) -> URL {
    switch self {
    case .files: folder
    #if SQLite
      case .database: folder.appending(path: "store.sqlite")
    #endif
    }
  }

  /// Opens a store with a long timeout for locks, because many processes may share few cores.
  func openPatiently(at place: URL, fileSystem: FileSystem = FileSystem()) -> any KeyValueStore {
    switch self {
    case .files: return FileStore(folder: place, fileSystem: fileSystem, lockTimeout: .seconds(60))
    #if SQLite
      case .database: return SQLiteStore(file: place, busyTimeout: .seconds(60), fileSystem: fileSystem)
    #endif
    }
  }

  /// Stores bytes under a name, with a backend that exists only during the call.
  func write(_ bytes: Data, to name: String, inFolder folder: URL) throws(StoreError) {
    let place = place(inFolder: folder)
    switch self {
    case .files:
      var backend = FileBackend(folder: place)
      try backend.write(bytes, to: name)
    #if SQLite
      case .database:
        var backend = SQLiteBackend(file: place)
        try backend.write(bytes, to: name)
    #endif
    }
  }

  /// Returns whether a file with this name may be in the folder of a store that no process uses.
  func keepsFile(named name: String) -> Bool {
    switch self {
    case .files: name.hasSuffix(".value")
    #if SQLite
      case .database: ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"].contains(name)
    #endif
    }
  }
}
