import DataStore
import DataStoreTesting
import Foundation
import RepositoryTesting
import TestSupport

#if SQLite
  @testable import DataStore
#endif

/// The place where the processes of a ``SignOutRun`` store their data.
protocol SignOutPlace: Sendable {
  /// Whether the stores use their own threads, so that a run has to wait for them.
  var isReal: Bool { get }

  /// The number of calls in flight in the stores.
  var callCount: Int { get }

  /// Opens the store of a process.
  func open(_ hooks: SimulatedStore.Hooks) -> any ProcessStore

  /// Returns the stored items or files whose names or contents include a text.
  func mentions(of text: String) throws -> [String]

  /// Replaces a stored value of a user with bytes that can't be decoded and contain the user's name.
  func corrupt(_ key: UserKey) throws
}

/// A place without threads of its own, on which a seed determines a run.
struct SimulatedPlace: SignOutPlace {
  private let storage = SimulatedStorage()

  var isReal: Bool { false }

  var callCount: Int { 0 }

  func open(_ hooks: SimulatedStore.Hooks) -> any ProcessStore { SimulatedStore(storage: storage, hooks: hooks) }

  func mentions(of text: String) -> [String] { storage.texts.filter { $0.contains(text) } }

  /// Does nothing: the simulated storage has no bytes.
  func corrupt(_ key: UserKey) {}
}

/// A folder that contains files or a database.
final class RealPlace: SignOutPlace {
  enum Kind: String, CaseIterable {
    case files
    #if SQLite
      case database
    #endif
  }

  private let kind: Kind
  // In memory if possible, so that no test waits for a disk.
  private let folder = TemporaryFolder(inMemory: true)
  private let calls = KillableStore.CallCount()

  init(_ kind: Kind) {
    self.kind = kind
  }

  var isReal: Bool { true }

  var callCount: Int { calls.value }

  func open(_ hooks: SimulatedStore.Hooks) -> any ProcessStore {
    let store: any KeyValueStore =
      switch kind {
      case .files: FileStore(folder: folder.url)
      #if SQLite
        case .database: SQLiteStore(file: folder.url.appending(path: "store.sqlite"))
      #endif
      }
    return KillableStore(store, hooks, calls)
  }

  func mentions(of text: String) throws -> [String] {
    switch kind {
    case .files: try folder.files(mentioning: text)
    #if SQLite
      case .database: try mentionsFoundByAnotherProcess(of: text)
    #endif
    }
  }

  #if SQLite
    /// Runs the search in another process, because closing a database file in this process would release the locks on
    /// it.
    private func mentionsFoundByAnotherProcess(of text: String) throws -> [String] {
      let path = folder.url.path(percentEncoded: false)
      let names = (FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? [])
      let search = Process()
      search.executableURL = URL(filePath: "/usr/bin/env")
      search.arguments = ["grep", "--recursive", "--text", "--fixed-strings", "--files-with-matches", text, path]
      let output = Pipe()
      (search.standardOutput, search.standardError) = (output, FileHandle.nullDevice)
      try search.run()
      let files = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      search.waitUntilExit()
      // The status is 1 if no file has the text, and 2 if a file is removed meanwhile. Without `grep`, it is another
      // one.
      guard [0, 1, 2].contains(search.terminationStatus) else { throw SearchFailure(status: search.terminationStatus) }
      return names.filter { $0.contains(text) } + files.split(separator: "\n").map(String.init)
    }

    private struct SearchFailure: Error {
      let status: Int32
    }
  #endif

  func corrupt(_ key: UserKey) throws {
    let name = try StoreKeyName("notes", id: key.storeID).encoded()
    let bytes = Data("\(key.user)'s notes are spoiled".utf8)
    switch kind {
    case .files:
      let file = folder.url.appending(path: "\(name).value")
      if FileManager.default.fileExists(atPath: file.path(percentEncoded: false)) { try bytes.write(to: file) }
    #if SQLite
      case .database:
        let fileSystem = FileSystem()
        let path = try fileSystem.resolve(fileSystem.openFolder(folder.url.path(percentEncoded: false)))
        let connection = try SQLiteConnection(
          path: "\(path)/store.sqlite", permissionsOf: nil, busyTimeout: .seconds(5), runsTriggers: true)
        try connection.run("UPDATE value SET bytes = ?1 WHERE name = ?2", .blob(bytes), .text(name))
    #endif
    }
  }
}
