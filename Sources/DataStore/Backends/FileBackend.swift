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
public struct FileBackend: StoreBackend {
  private let folder: String
  private let fileSystem: FileSystem
  private var folderWasThere = false
  private var leftOversAreRemoved = false

  /// Creates a backend in a folder, which the first write makes where it is missing.
  public init(folder: URL) {
    self.init(folder: folder, fileSystem: FileSystem())
  }

  init(folder: URL, fileSystem: FileSystem) {
    var path = folder.isFileURL ? folder.absoluteURL.path(percentEncoded: false) : ""
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.folder = path
    self.fileSystem = fileSystem
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
      let modified = try replace(fileName, by: bytes, in: folder)
      do throws(SystemError) {
        try fileSystem.synchronize(folder)
      } catch {
        try putBack(old, as: fileName, in: folder)
        throw error
      }
      removeLeftOvers(before: modified, in: folder)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// Removes a file.
  public mutating func remove(_ name: String) throws(StoreError) {
    do throws(SystemError) {
      guard let folder = try openFolder() else { return }
      let fileName = Self.fileName(of: name)
      let temporaryName = Self.temporaryName()
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
  public mutating func setAside(_ name: String, at time: Date) throws(StoreError) -> String {
    do throws(SystemError) {
      let folder = try openOrMakeFolder()
      var attempt = 1
      while true {
        let asideName = Self.asideName(for: name, at: time, attempt: attempt)
        do throws(SystemError) {
          // Reserves the name, because renaming alone would replace a file that has it.
          _ = try fileSystem.create(asideName, in: folder)
        } catch {
          guard error.code == EEXIST else { throw error }
          attempt += 1
          continue
        }
        do throws(SystemError) {
          try move(Self.fileName(of: name), to: asideName, in: folder)
        } catch {
          discard(asideName, in: folder)
          throw error
        }
        return folder.path(of: asideName)
      }
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

  private static func temporaryName() -> String {
    temporaryPrefix + String(UInt64.random(in: .min ... .max), radix: 16)
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
    try makeFolder(folder)
    let descriptor = try fileSystem.openFolder(folder)
    folderWasThere = true
    return descriptor
  }

  /// Makes a folder, and those above it where they are missing, durably.
  private func makeFolder(_ path: String) throws(SystemError) {
    let parent = URL(filePath: path, directoryHint: .isDirectory).deletingLastPathComponent().path(
      percentEncoded: false)
    do throws(SystemError) {
      try fileSystem.makeFolder(path)
    } catch {
      switch error.code {
      case EEXIST: return
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
  }

  /// Puts bytes in the place of a file, whole or not at all; durable once the folder is synchronised.
  ///
  /// - Returns: When the bytes were written, by the clock of the file system.
  private func replace(
    _ fileName: String, by bytes: Data, in folder: borrowing Descriptor
  ) throws(SystemError) -> Int {
    let temporaryName = Self.temporaryName()
    let file = try fileSystem.create(temporaryName, in: folder)
    do throws(SystemError) {
      try fileSystem.append(bytes, to: file)
      try fileSystem.synchronize(file)
      let modified = try fileSystem.status(of: file).modified
      try fileSystem.rename(temporaryName, to: fileName, in: folder)
      return modified
    } catch {
      discard(temporaryName, in: folder)
      throw error
    }
  }

  /// Undoes ``replace(_:by:in:)``.
  private func putBack(
    _ old: consuming Descriptor?, as fileName: String, in folder: borrowing Descriptor
  ) throws(SystemError) {
    do throws(SystemError) {
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
      try fileSystem.rename(newName, to: name, in: folder)
      throw error
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
  /// Another store may be writing in the folder at this moment; nobody needs an hour for it.
  private mutating func removeLeftOvers(before modified: Int, in folder: borrowing Descriptor) {
    guard !leftOversAreRemoved else { return }
    leftOversAreRemoved = true
    do throws(SystemError) {
      for name in try fileSystem.list(folder) where name.hasPrefix(Self.temporaryPrefix) {
        let status = try fileSystem.status(of: name, in: folder)
        if status.isRegularFile, status.modified <= modified - 3600 { discard(name, in: folder) }
      }
    } catch {
      // The write that comes with it is done and must not seem to fail. The next store over the folder tries again.
    }
  }
}
