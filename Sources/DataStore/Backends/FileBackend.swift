public import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Keeps bytes in a folder, one file for each name: `<name>.value`.
///
/// Bytes are written to a temporary file first, which is synchronised and then takes the place of the old one, and the
/// folder is synchronised after it. A step that fails takes back the ones before it.
///
/// Several processes may use one folder: no file is ever changed where it is, temporary files have names that no two
/// backends share, and what a step takes back or moves aside is what it looked at only. For that they take turns, by a
/// lock on the folder that is held for a few system calls and ends with its process.
public struct FileBackend: StoreBackend {
  let folder: String
  let fileSystem: FileSystem
  let leftOverAge: Int
  let lockTimeout: Duration
  var folderWasThere = false
  var folderIsDurable = false
  var leftOversAreRemoved = false
  var watcher: FolderWatcher?
  /// The beginning of the names of the temporary files this backend makes.
  let temporaryPrefix = Self.temporaryPrefix + String(UInt64.random(in: .min ... .max), radix: 16) + "-"
  var temporaryCount = 0

  /// Creates a backend in a folder, which the first write makes where it is missing.
  public init(folder: URL) {
    self.init(folder: folder, fileSystem: FileSystem())
  }

  /// - Parameters:
  ///   - leftOverAge: In seconds; temporary files that are older are of a process that has ended.
  ///   - lockTimeout: How long a call waits for another process that changes names in the folder before it throws.
  package init(folder: URL, fileSystem: FileSystem, leftOverAge: Int = 3600, lockTimeout: Duration = .seconds(5)) {
    var path = folder.isFileURL ? folder.absoluteURL.path(percentEncoded: false) : ""
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.folder = path
    self.fileSystem = fileSystem
    self.leftOverAge = leftOverAge
    self.lockTimeout = lockTimeout
  }

  /// The bytes of a file.
  public mutating func read(_ name: String) throws(StoreError) -> Data? {
    do throws(SystemError) {
      guard let folder = try openFolder() else { return nil }
      guard let file = try fileSystem.openFile(Self.fileName(of: name), in: folder) else { return nil }
      return try fileSystem.read(file)
    } catch {
      throw .readFailed(error)
    }
  }

  /// Replaces a file.
  public mutating func write(_ bytes: Data, to name: String) throws(StoreError) {
    do throws(SystemError) {
      let folder = try openOrMakeFolder()
      let fileName = Self.fileName(of: name)
      guard let replacement = try replace(fileName, by: bytes, in: folder) else {
        preconditionFailure("Whatever file was there may be replaced.")
      }
      do throws(SystemError) {
        try fileSystem.synchronize(folder)
      } catch {
        try putBack(replacement, as: fileName, in: folder)
        throw error
      }
      removeLeftOvers(before: replacement.new.changed, in: folder)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// Removes a file.
  public mutating func remove(_ name: String) throws(StoreError) {
    do throws(SystemError) {
      guard let folder = try openFolder() else { return }
      let fileName = Self.fileName(of: name)
      let temporaryName = temporaryName()
      do throws(SystemError) {
        try move(fileName, to: temporaryName, in: folder)
      } catch {
        if error.code == ENOENT { return }
        throw error
      }
      // The value is gone for good already. If this fails, the file goes with the left-overs.
      discard(temporaryName, in: folder)
    } catch {
      throw .removeFailed(error)
    }
  }

  /// Gives a file the name `<name>.corrupt-<time>`.
  public mutating func setAside(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    do throws(SystemError) {
      guard let folder = try openFolder() else { return nil }
      guard let asideName = try moveAside(bytes, of: name, at: time, in: folder) else { return nil }
      do throws(SystemError) {
        try fileSystem.synchronize(folder)
      } catch {
        try putBack(asideName, as: Self.fileName(of: name), in: folder)
        throw error
      }
      return folder.path(of: asideName)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// All names under which there is a file.
  public mutating func names() throws(StoreError) -> [String] {
    do throws(SystemError) {
      guard let folder = try openFolder() else { return [] }
      return try fileSystem.list(folder).compactMap(Self.name(ofFile:))
    } catch {
      throw .readFailed(error)
    }
  }
}

extension FileBackend {
  /// Watches the folder; where it does not exist yet, those above it.
  public mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {
    do throws(SystemError) {
      try fileSystem.validate(folder)
      watcher = try FolderWatcher(
        folder: folder, ownPrefix: temporaryPrefix, fileSystem: fileSystem, onChange: onChange)
    } catch {
      throw .readFailed(error)
    }
  }

  /// The files that others changed.
  public mutating func takeOutsideChanges() throws(StoreError) -> OutsideChanges {
    guard let watcher else { return .names([]) }
    do throws(SystemError) {
      guard let files = try watcher.takeChangedFiles() else { return .unknown }
      return .names(files.compactMap(Self.name(ofFile:)))
    } catch {
      self.watcher = nil
      throw .readFailed(error)
    }
  }
}
