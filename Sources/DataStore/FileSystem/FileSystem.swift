internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The system calls of a ``FileBackend``, each in one place.
///
/// Files are named relative to an open folder and symbolic links are never followed, so no call reaches out of the
/// folder. Every call is tried again when a signal interrupts it. For tests, any call can be made to fail.
package struct FileSystem: Sendable {
  /// A call that is about to be made.
  package struct Call: Hashable, Sendable {
    /// The name of the system call.
    package let operation: String
    package let path: String
  }

  /// What is known of a file.
  struct Status: Equatable {
    let isRegularFile: Bool
    /// In bytes.
    let size: Int
    /// When it was last written or given a name, in seconds by the clock of the file system.
    let changed: Int
    /// Distinguishes the file from every other on the volume.
    let inode: UInt64
    /// The number of names; 0 for a file that was removed and is still open.
    let linkCount: Int
  }

  /// Called before each call: returns the error number with which it fails without being made, or `nil` to make it.
  package var fault: @Sendable (Call) -> CInt?

  /// The most bytes one call writes.
  package var maximumWriteSize: Int

  /// The size in bytes of the largest file that is read or written.
  package var maximumFileSize: Int

  package init(
    fault: @escaping @Sendable (Call) -> CInt? = { _ in nil }, maximumWriteSize: Int = .max,
    maximumFileSize: Int = 1 << 30
  ) {
    self.fault = fault
    self.maximumWriteSize = maximumWriteSize
    self.maximumFileSize = maximumFileSize
  }

  /// Opens a folder.
  func openFolder(_ path: String) throws(SystemError) -> Descriptor {
    try validate(path)
    let number = try perform("open", path) { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    return Descriptor(number: number, path: path)
  }

  /// Fails for what cannot be the path of a folder.
  func validate(_ path: String) throws(SystemError) {
    // A path with a NUL would be cut off there, and name another folder.
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw SystemError(code: EINVAL, operation: "open", path: path)
    }
  }

  /// Makes a folder that only its owner may use.
  func makeFolder(_ path: String) throws(SystemError) {
    try perform("mkdir", path) { mkdir(path, 0o700) }
  }

  /// Removes an empty folder.
  func removeFolder(_ path: String) throws(SystemError) {
    try perform("rmdir", path) { rmdir(path) }
  }

  /// Creates a file that only its owner may use, for writing.
  ///
  /// Fails when there is one of that name.
  func create(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Descriptor {
    let path = folder.path(of: name)
    let directory = folder.number
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let number = try perform("create", path) { openat(directory, name, flags, 0o600) }
    return Descriptor(number: number, path: path)
  }

  /// Opens a file that only its owner may use, to lock it, and creates it empty if there is none.
  func openLockFile(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Descriptor {
    let path = folder.path(of: name)
    let directory = folder.number
    // Also for writing, because a network volume may lock for one process only what that process may write.
    let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
    return Descriptor(number: try perform("open", path) { openat(directory, name, flags, 0o600) }, path: path)
  }

  /// Opens a file for reading, or returns `nil` if there is none.
  ///
  /// Fails for whatever else than a file the name belongs to.
  func openFile(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Descriptor? {
    let path = folder.path(of: name)
    let directory = folder.number
    // Not to block keeps a named pipe from holding the store for ever.
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
    do throws(SystemError) {
      let number = try perform("open", path) { openat(directory, name, flags) }
      let file = Descriptor(number: number, path: path)
      guard try status(of: file).isRegularFile else { throw SystemError(code: EINVAL, operation: "open", path: path) }
      return file
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
  }

  /// What is known of an open file.
  func status(of file: borrowing Descriptor) throws(SystemError) -> Status {
    var status = stat()
    let number = file.number
    try perform("fstat", file.path) { fstat(number, &status) }
    return Status(status)
  }

  /// What is known of a file by its name.
  func status(of name: String, in folder: borrowing Descriptor) throws(SystemError) -> Status {
    var status = stat()
    let directory = folder.number
    try perform("fstatat", folder.path(of: name)) { fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) }
    return Status(status)
  }

  /// Whether there is something of a name.
  func exists(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try status(of: name, in: folder)
      return true
    } catch {
      if error.code == ENOENT { return false }
      throw error
    }
  }

  /// The bytes of a file; `nil` if there is none.
  func read(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Data? {
    guard let file = try openFile(name, in: folder) else { return nil }
    return try read(file)
  }

  /// All bytes of a file.
  ///
  /// Fails for one that is too large before it reads it, because a file may claim any size.
  func read(_ file: borrowing Descriptor) throws(SystemError) -> Data {
    let tooLarge = SystemError(code: EFBIG, operation: "read", path: file.path)
    let size = try status(of: file).size
    guard size <= maximumFileSize else { throw tooLarge }
    // One byte more than the file has, so that one call reads it all and finds the end.
    var bytes = Data(count: size + 1)
    var count = 0
    let number = file.number
    while true {
      let step = try perform("read", file.path) {
        bytes.withUnsafeMutableBytes { pread(number, $0.baseAddress! + count, $0.count - count, off_t(count)) }
      }
      count += step
      if count > maximumFileSize { throw tooLarge }
      // Only the end of a file makes a read shorter than it could be.
      if count < bytes.count { break }
      bytes.count = min(2 * count, maximumFileSize + 1)
    }
    bytes.count = count
    return bytes
  }

  /// Adds bytes to a file that was created for it; fails for more than would be read again.
  func append(_ bytes: Data, to file: borrowing Descriptor) throws(SystemError) {
    guard bytes.count <= maximumFileSize else { throw SystemError(code: EFBIG, operation: "write", path: file.path) }
    var count = 0
    let number = file.number
    while count < bytes.count {
      count += try perform("write", file.path) {
        bytes.withUnsafeBytes {
          write(number, $0.baseAddress! + count, min($0.count - count, maximumWriteSize))
        }
      }
    }
  }

  /// Returns once a file's bytes, or a folder's names, would survive a loss of power.
  func synchronize(_ file: borrowing Descriptor) throws(SystemError) {
    let number = file.number
    try perform("fsync", file.path) {
      #if canImport(Darwin)
        // There `fsync` leaves bytes in the drive's cache. Not every volume knows the thorough way.
        if fcntl(number, F_FULLFSYNC) != -1 { return 0 }
      #endif
      return fsync(number)
    }
  }

  /// Gives a file another name, replacing the file that has it.
  func rename(_ name: String, to newName: String, in folder: borrowing Descriptor) throws(SystemError) {
    let directory = folder.number
    try perform("rename", folder.path(of: newName)) { renameat(directory, name, directory, newName) }
  }

  /// Removes a file.
  func unlink(_ name: String, in folder: borrowing Descriptor) throws(SystemError) {
    let directory = folder.number
    try perform("unlink", folder.path(of: name)) { unlinkat(directory, name, 0) }
  }

  /// The path of a folder without symbolic links.
  func resolve(_ folder: borrowing Descriptor) throws(SystemError) -> String {
    let path = folder.path
    if let code = fault(Call(operation: "realpath", path: path)) {
      throw SystemError(code: code, operation: "realpath", path: path)
    }
    guard let resolved = realpath(path, nil) else {
      throw SystemError(code: errno, operation: "realpath", path: path)
    }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// The names of what is in a folder, but for those that are no text.
  func list(_ folder: borrowing Descriptor) throws(SystemError) -> [String] {
    let directory = folder.number
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
    // A descriptor of its own, because reading moves its position and closing the stream closes it.
    let number = try perform("open", folder.path) { openat(directory, ".", flags) }
    guard let stream = fdopendir(number) else {
      let code = errno
      close(number)
      throw SystemError(code: code, operation: "fdopendir", path: folder.path)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      var code = fault(Call(operation: "readdir", path: folder.path)) ?? 0
      if code == 0 {
        errno = 0
        if let entry = readdir(stream) {
          // An entry is only as long as its name, shorter than its type, so it must not be copied.
          let name = UnsafeRawPointer(entry) + MemoryLayout<dirent>.offset(of: \.d_name)!
          if let name = String(validatingCString: name.assumingMemoryBound(to: CChar.self)) { names.append(name) }
          continue
        }
        code = errno
        if code == 0 { return names }
      }
      if code != EINTR { throw SystemError(code: code, operation: "readdir", path: folder.path) }
    }
  }
}

extension FileSystem {
  @discardableResult
  func perform<Result: SignedInteger>(
    _ operation: String, _ path: String, _ call: () -> Result
  ) throws(SystemError) -> Result {
    while true {
      var code = fault(Call(operation: operation, path: path)) ?? 0
      if code == 0 {
        let result = call()
        if result != -1 { return result }
        code = errno
      }
      if code != EINTR { throw SystemError(code: code, operation: operation, path: path) }
    }
  }
}

/// An open file or folder, closed when it is let go.
struct Descriptor: ~Copyable, Sendable {
  let number: CInt
  let path: String

  init(number: CInt, path: String) {
    self.number = number
    self.path = path
  }

  deinit {
    // What was written is synchronised before, so closing can lose nothing.
    close(number)
  }

  /// The path of a file in this folder, for messages.
  func path(of name: String) -> String {
    "\(path)/\(name)"
  }
}

extension FileSystem.Status {
  fileprivate init(_ status: stat) {
    isRegularFile = status.st_mode & S_IFMT == S_IFREG
    size = Int(status.st_size)
    #if canImport(Darwin)
      changed = status.st_ctimespec.tv_sec
    #else
      changed = status.st_ctim.tv_sec
    #endif
    inode = UInt64(status.st_ino)
    linkCount = Int(status.st_nlink)
  }
}
