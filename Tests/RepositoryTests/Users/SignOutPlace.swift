import DataStore
import DataStoreTesting
import Foundation
import RepositoryTesting

#if SQLite
  @testable import DataStore
#endif

/// Where the processes of a ``SignOutRun`` keep what is theirs.
protocol SignOutPlace: Sendable {
  /// Whether the stores work on threads of their own, so that a run has to wait for them.
  var isReal: Bool { get }

  /// How many calls the stores are making.
  var callCount: Int { get }

  /// Opens the store of a process.
  func open(_ hooks: SimulatedStore.Hooks) -> any ProcessStore

  /// Returns where a text is, in all that is kept.
  func mentions(of text: String) throws -> [String]

  /// Replaces a stored value of a user by bytes that can't be decoded and have the user's name in them.
  func spoil(_ key: UserKey) throws
}

/// A place where nothing takes time of its own, so that a seed determines a run.
struct SimulatedPlace: SignOutPlace {
  private let storage = SimulatedStorage()

  var isReal: Bool { false }

  var callCount: Int { 0 }

  func open(_ hooks: SimulatedStore.Hooks) -> any ProcessStore { SimulatedStore(storage: storage, hooks: hooks) }

  func mentions(of text: String) -> [String] { storage.texts.filter { $0.contains(text) } }

  func spoil(_ key: UserKey) {}
}

/// A folder of files, or with a database.
final class RealPlace: SignOutPlace {
  enum Kind: String, CaseIterable {
    case files
    #if SQLite
      case database
    #endif
  }

  private let kind: Kind
  private let folder: URL
  private let calls = EndableStore.CallCount()

  init(_ kind: Kind) {
    self.kind = kind
    let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
    let isThere = FileManager.default.isWritableFile(atPath: memory.path())
    // Nothing is to wait for a disk.
    folder = (isThere ? memory : FileManager.default.temporaryDirectory).appending(
      path: "RepositoryTests-\(UUID().uuidString)", directoryHint: .isDirectory)
  }

  deinit {
    // A store that still works may make a file meanwhile. What is left behind harms no other test.
    for _ in 0..<10 where FileManager.default.fileExists(atPath: folder.path()) {
      try? FileManager.default.removeItem(at: folder)
    }
  }

  var isReal: Bool { true }

  var callCount: Int { calls.value }

  func open(_ hooks: SimulatedStore.Hooks) -> any ProcessStore {
    let store: any KeyValueStore =
      switch kind {
      case .files: FileStore(folder: folder)
      #if SQLite
        case .database: SQLiteStore(file: folder.appending(path: "store.sqlite"))
      #endif
      }
    return EndableStore(store, hooks, calls)
  }

  /// Searches in another process, because to close a file of a database in this one would end the locks on it.
  func mentions(of text: String) throws -> [String] {
    let path = folder.path(percentEncoded: false)
    let names = (FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? [])
    let search = Process()
    search.executableURL = URL(filePath: "/bin/grep")
    search.arguments = ["--recursive", "--text", "--fixed-strings", "--files-with-matches", text, path]
    let output = Pipe()
    (search.standardOutput, search.standardError) = (output, FileHandle.nullDevice)
    try search.run()
    let files = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    search.waitUntilExit()
    return names.filter { $0.contains(text) } + files.split(separator: "\n").map(String.init)
  }

  func spoil(_ key: UserKey) throws {
    let name = try StoreKeyName("notes", id: key.storeID).encoded()
    let bytes = Data("\(key.user)'s notes are spoiled".utf8)
    switch kind {
    case .files:
      let file = folder.appending(path: "\(name).value")
      if FileManager.default.fileExists(atPath: file.path(percentEncoded: false)) { try bytes.write(to: file) }
    #if SQLite
      case .database:
        let fileSystem = FileSystem()
        let path = try fileSystem.resolve(fileSystem.openFolder(folder.path(percentEncoded: false)))
        let connection = try SQLiteConnection(
          path: "\(path)/store.sqlite", permissionsOf: nil, busyTimeout: .seconds(5), runsTriggers: true)
        try connection.run("UPDATE value SET bytes = ?1 WHERE name = ?2", .blob(bytes), .text(name))
    #endif
    }
  }
}
