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
/// backends share, and what a step takes back is its own only.
public struct FileBackend: StoreBackend {
  private let folder: String
  private let fileSystem: FileSystem
  private let leftOverAge: Int
  private var folderWasThere = false
  private var leftOversAreRemoved = false
  private var watcher: FolderWatcher?
  /// The beginning of the names of the temporary files this backend makes.
  private let temporaryPrefix = Self.temporaryPrefix + String(UInt64.random(in: .min ... .max), radix: 16) + "-"
  private var temporaryCount = 0

  /// Creates a backend in a folder, which the first write makes where it is missing.
  public init(folder: URL) {
    self.init(folder: folder, fileSystem: FileSystem())
  }

  /// - Parameter leftOverAge: In seconds; temporary files that are older are of a process that has ended.
  package init(folder: URL, fileSystem: FileSystem, leftOverAge: Int = 3600) {
    var path = folder.isFileURL ? folder.absoluteURL.path(percentEncoded: false) : ""
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.folder = path
    self.fileSystem = fileSystem
    self.leftOverAge = leftOverAge
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
      // Keeps the old bytes within reach until the new ones are durable.
      let old = try fileSystem.openFile(fileName, in: folder)
      let new = try replace(fileName, by: bytes, in: folder)
      do throws(SystemError) {
        try fileSystem.synchronize(folder)
      } catch {
        try putBack(old, as: fileName, insteadOf: new, in: folder)
        throw error
      }
      removeLeftOvers(before: new.changed, in: folder)
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
      let fileName = Self.fileName(of: name)
      guard let file = try fileSystem.openFile(fileName, in: folder), try fileSystem.read(file) == bytes else {
        return nil
      }
      let inode = try fileSystem.status(of: file).inode
      let asideName = try reserveAsideName(for: name, at: time, in: folder)
      do throws(SystemError) {
        try fileSystem.rename(fileName, to: asideName, in: folder)
      } catch {
        discard(asideName, in: folder)
        if error.code == ENOENT { return nil }
        throw error
      }
      do throws(SystemError) {
        // Somebody may have put a good value there since it was read.
        if try fileSystem.status(of: asideName, in: folder).inode != inode {
          try putBack(asideName, as: fileName, in: folder)
          try fileSystem.synchronize(folder)
          return nil
        }
        try fileSystem.synchronize(folder)
      } catch {
        try putBack(asideName, as: fileName, in: folder)
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

extension FileBackend {
  private static let fileExtension = ".value"
  private static let temporaryPrefix = ".DataStore-"

  private static func fileName(of name: String) -> String {
    name + fileExtension
  }

  private static func name(ofFile fileName: String) -> String? {
    guard fileName.hasSuffix(fileExtension) else { return nil }
    let name = String(fileName.dropLast(fileExtension.count))
    return StoreKeyName(encoded: name) == nil ? nil : name
  }

  private mutating func temporaryName() -> String {
    temporaryCount += 1
    return temporaryPrefix + String(temporaryCount)
  }

  private static func parent(of path: String) -> String {
    URL(filePath: path, directoryHint: .isDirectory).deletingLastPathComponent().path(percentEncoded: false)
  }

  /// The folder; nil when it has never been there.
  private mutating func openFolder() throws(SystemError) -> Descriptor? {
    do throws(SystemError) {
      let descriptor = try fileSystem.openFolder(folder)
      folderWasThere = true
      return descriptor
    } catch {
      if error.code == ENOENT, !folderWasThere { return nil }
      throw error
    }
  }

  /// The folder, made if it has never been there.
  private mutating func openOrMakeFolder() throws(SystemError) -> Descriptor {
    if let descriptor = try openFolder() { return descriptor }
    if try !makeFolder(folder) {
      // Whoever made it at the same time may not have made it durable yet.
      try fileSystem.synchronize(fileSystem.openFolder(Self.parent(of: folder)))
    }
    let descriptor = try fileSystem.openFolder(folder)
    folderWasThere = true
    return descriptor
  }

  /// Makes a folder, and those above it where they are missing, durably.
  ///
  /// - Returns: Whether it was not there.
  @discardableResult
  private func makeFolder(_ path: String) throws(SystemError) -> Bool {
    let parent = Self.parent(of: path)
    do throws(SystemError) {
      try fileSystem.makeFolder(path)
    } catch {
      switch error.code {
      case EEXIST: return false
      case ENOENT where parent != path:
        try makeFolder(parent)
        try fileSystem.makeFolder(path)
      default: throw error
      }
    }
    do throws(SystemError) {
      try fileSystem.synchronize(fileSystem.openFolder(parent))
    } catch {
      // Else the next write would find the folder and take it for durable.
      do throws(SystemError) {
        try fileSystem.removeFolder(path)
      } catch {
        // The first failure says more than this one.
      }
      throw error
    }
    return true
  }

  /// Puts bytes in the place of a file, whole or not at all; durable once the folder is synchronised.
  ///
  /// - Returns: What is known of the new file.
  private mutating func replace(
    _ fileName: String, by bytes: Data, in folder: borrowing Descriptor
  ) throws(SystemError) -> FileSystem.Status {
    let temporaryName = temporaryName()
    let file = try fileSystem.create(temporaryName, in: folder)
    do throws(SystemError) {
      try fileSystem.append(bytes, to: file)
      try fileSystem.synchronize(file)
      let status = try fileSystem.status(of: file)
      try fileSystem.rename(temporaryName, to: fileName, in: folder)
      return status
    } catch {
      discard(temporaryName, in: folder)
      throw error
    }
  }

  /// Undoes ``replace(_:by:in:)``, unless somebody else has replaced the new file already.
  private mutating func putBack(
    _ old: consuming Descriptor?, as fileName: String, insteadOf new: FileSystem.Status,
    in folder: borrowing Descriptor
  ) throws(SystemError) {
    do throws(SystemError) {
      guard try fileSystem.status(of: fileName, in: folder).inode == new.inode else { return }
      if let old {
        _ = try replace(fileName, by: fileSystem.read(old), in: folder)
      } else {
        try fileSystem.unlink(fileName, in: folder)
      }
    } catch {
      throw SystemError(code: error.code, operation: "putting back the old value", path: error.path)
    }
  }

  /// Gives a file another name, durably.
  private func move(_ name: String, to newName: String, in folder: borrowing Descriptor) throws(SystemError) {
    try fileSystem.rename(name, to: newName, in: folder)
    do throws(SystemError) {
      try fileSystem.synchronize(folder)
    } catch {
      if try !putBack(newName, as: name, in: folder) { discard(newName, in: folder) }
      throw error
    }
  }

  /// Undoes the renaming of a file, unless somebody else has given the old name to a newer one already.
  ///
  /// - Returns: Whether the file has its old name again.
  @discardableResult
  private func putBack(
    _ name: String, as oldName: String, in folder: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try fileSystem.status(of: oldName, in: folder)
      return false
    } catch {
      guard error.code == ENOENT else { throw error }
    }
    try fileSystem.rename(name, to: oldName, in: folder)
    return true
  }

  /// Makes an empty file in the place for bytes that are set aside, because renaming alone would replace a file that
  /// is there.
  private func reserveAsideName(
    for name: String, at time: Date, in folder: borrowing Descriptor
  ) throws(SystemError) -> String {
    var attempt = 1
    while true {
      let asideName = Self.asideName(for: name, at: time, attempt: attempt)
      do throws(SystemError) {
        _ = try fileSystem.create(asideName, in: folder)
        return asideName
      } catch {
        guard error.code == EEXIST else { throw error }
        attempt += 1
      }
    }
  }

  /// Removes a file that holds nothing of value.
  ///
  /// One that stays costs space and nothing else, so a failure is not worth more than the error, or the success, that
  /// is being reported.
  private func discard(_ name: String, in folder: borrowing Descriptor) {
    do { try fileSystem.unlink(name, in: folder) } catch {}
  }

  /// Removes temporary files that a process left when it ended in the middle of a write.
  ///
  /// Another store may be writing in the folder at this moment; nobody needs an hour for it. One that did, because it
  /// was stopped for as long, finds its file gone and throws.
  private mutating func removeLeftOvers(before now: Int, in folder: borrowing Descriptor) {
    guard !leftOversAreRemoved else { return }
    leftOversAreRemoved = true
    do throws(SystemError) {
      for name in try fileSystem.list(folder) where name.hasPrefix(Self.temporaryPrefix) {
        let status = try fileSystem.status(of: name, in: folder)
        if status.isRegularFile, status.changed <= now - leftOverAge { discard(name, in: folder) }
      }
    } catch {
      // The write that comes with it is done and must not seem to fail. The next store over the folder tries again.
    }
  }
}
