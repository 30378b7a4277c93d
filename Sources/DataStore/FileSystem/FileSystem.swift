internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The system calls of ``FolderHub`` and of the stores that keep their data in files.
///
/// Files are named relative to an open folder, and a symbolic link under such a name is never followed. So no call
/// reaches a file outside the folder. A call that a signal interrupts is retried. A test can make almost any call fail.
package struct FileSystem: Sendable {
  /// A call that is about to be made.
  package struct Call: Hashable, Sendable {
    /// The name of the system call, or a more specific one such as `create` for an `openat` that creates a file.
    package let operation: String
    package let path: String
  }

  /// The attributes of a file.
  struct Status: Equatable {
    let isRegularFile: Bool
    /// In bytes.
    let size: Int
    /// The time of the last change of its bytes, name or attributes, in seconds since 1970 by the clock of the file
    /// system.
    let changeTime: Int
    /// The number that identifies the file on its volume.
    let inode: UInt64
    /// The number of names; 0 for a file that is open but was removed.
    let linkCount: Int
  }

  /// Called before almost every system call, to inject an error.
  ///
  /// Returns the error number with which the call fails instead of being made, or `nil` to make the call.
  package var fault: @Sendable (Call) -> CInt?

  /// The largest number of bytes that a single system call writes.
  package var maximumWriteSize: Int

  /// The largest size of a file that is read or written, in bytes.
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

  /// Throws `EINVAL` if a path can't refer to a folder.
  func validate(_ path: String) throws(SystemError) {
    // The system would cut off a path at a NUL, and so open another folder.
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw SystemError(code: EINVAL, operation: "open", path: path)
    }
  }

  /// Creates a folder that only its owner may use.
  func makeFolder(_ path: String) throws(SystemError) {
    try perform("mkdir", path) { mkdir(path, 0o700) }
  }

  /// Removes an empty folder.
  func removeFolder(_ path: String) throws(SystemError) {
    try perform("rmdir", path) { rmdir(path) }
  }

  /// Creates a file that only its owner may use, and opens it for writing.
  ///
  /// - Throws: `EEXIST` if the name is taken.
  func create(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Descriptor {
    let path = folder.path(of: name)
    let folderNumber = folder.number
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let number = try perform("create", path) { openat(folderNumber, name, flags, 0o600) }
    return Descriptor(number: number, path: path)
  }

  /// Opens a file for locking; if it is missing, creates an empty one that only its owner may use.
  func openLockFile(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Descriptor {
    let path = folder.path(of: name)
    let folderNumber = folder.number
    // The file is opened for writing too, because a network volume may grant an exclusive lock only then.
    let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
    return Descriptor(number: try perform("open", path) { openat(folderNumber, name, flags, 0o600) }, path: path)
  }

  /// Opens a file for reading, or returns `nil` if it doesn't exist.
  ///
  /// - Throws: An error such as `EINVAL` or `ELOOP` if the name belongs to an item that isn't a regular file.
  func openFile(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Descriptor? {
    let path = folder.path(of: name)
    let folderNumber = folder.number
    // `O_NONBLOCK` prevents a named pipe from blocking the store indefinitely.
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
    do throws(SystemError) {
      let number = try perform("open", path) { openat(folderNumber, name, flags) }
      let file = Descriptor(number: number, path: path)
      guard try status(of: file).isRegularFile else { throw SystemError(code: EINVAL, operation: "open", path: path) }
      return file
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
  }

  /// Returns the attributes of an open file.
  func status(of file: borrowing Descriptor) throws(SystemError) -> Status {
    var status = stat()
    let number = file.number
    try perform("fstat", file.path) { fstat(number, &status) }
    return Status(status)
  }

  /// Returns the attributes of the file with the given name.
  func status(of name: String, in folder: borrowing Descriptor) throws(SystemError) -> Status {
    var status = stat()
    let folderNumber = folder.number
    try perform("fstatat", folder.path(of: name)) { fstatat(folderNumber, name, &status, AT_SYMLINK_NOFOLLOW) }
    return Status(status)
  }

  /// Returns whether a folder contains an item with the given name.
  func exists(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try status(of: name, in: folder)
      return true
    } catch {
      if error.code == ENOENT { return false }
      throw error
    }
  }

  /// Returns the bytes of a file, or `nil` if it doesn't exist.
  func read(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Data? {
    guard let file = try openFile(name, in: folder) else { return nil }
    return try read(file)
  }

  /// Returns all bytes of an open file.
  ///
  /// - Throws: `EFBIG` if the file is too large. The size is checked first, because a buffer for a huge file could
  ///   exhaust the memory.
  func read(_ file: borrowing Descriptor) throws(SystemError) -> Data {
    let tooLarge = SystemError(code: EFBIG, operation: "read", path: file.path)
    let size = try status(of: file).size
    guard size <= maximumFileSize else { throw tooLarge }
    // The buffer is one byte larger than the file, so that a single call reads all bytes and detects the end.
    var bytes = Data(count: size + 1)
    var readCount = 0
    let number = file.number
    while true {
      let newCount = try perform("read", file.path) {
        bytes.withUnsafeMutableBytes { buffer in
          pread(number, buffer.baseAddress! + readCount, buffer.count - readCount, off_t(readCount))
        }
      }
      readCount += newCount
      if readCount > maximumFileSize { throw tooLarge }
      // A read that doesn't fill the buffer has reached the end of the file.
      if readCount < bytes.count { break }
      bytes.count = min(2 * readCount, maximumFileSize + 1)
    }
    bytes.count = readCount
    return bytes
  }

  /// Appends bytes to a file that was just created.
  ///
  /// - Throws: `EFBIG` if there are more bytes than ``maximumFileSize``, because they could not be read again.
  func append(_ bytes: Data, to file: borrowing Descriptor) throws(SystemError) {
    guard bytes.count <= maximumFileSize else { throw SystemError(code: EFBIG, operation: "write", path: file.path) }
    var writtenCount = 0
    let number = file.number
    while writtenCount < bytes.count {
      writtenCount += try perform("write", file.path) {
        bytes.withUnsafeBytes {
          write(number, $0.baseAddress! + writtenCount, min($0.count - writtenCount, maximumWriteSize))
        }
      }
    }
  }

  /// Makes the bytes of a file, or the names in a folder, survive a loss of power, if the volume supports that.
  func synchronize(_ file: borrowing Descriptor) throws(SystemError) {
    let number = file.number
    try perform("fsync", file.path) {
      #if canImport(Darwin)
        // On Darwin `fsync` leaves bytes in the drive's cache. `F_FULLFSYNC` flushes that cache too. On a volume that
        // doesn't support it, `fsync` has to suffice.
        if fcntl(number, F_FULLFSYNC) != -1 { return CInt(0) }
        guard [ENOTSUP, EINVAL, ENOTTY].contains(errno) else { return CInt(-1) }
      #endif
      return fsync(number)
    }
  }

  /// Renames a file, replacing an existing file of the new name.
  func rename(_ name: String, to newName: String, in folder: borrowing Descriptor) throws(SystemError) {
    let folderNumber = folder.number
    try perform("rename", folder.path(of: newName)) { renameat(folderNumber, name, folderNumber, newName) }
  }

  /// Removes a file.
  func unlink(_ name: String, in folder: borrowing Descriptor) throws(SystemError) {
    let folderNumber = folder.number
    try perform("unlink", folder.path(of: name)) { unlinkat(folderNumber, name, 0) }
  }

  /// Returns the path of a folder, with all symbolic links resolved.
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

  /// Returns those names of items in a folder that are valid UTF-8, including `.` and `..`.
  func list(_ folder: borrowing Descriptor) throws(SystemError) -> [String] {
    let folderNumber = folder.number
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
    // The stream needs a descriptor of its own, because it moves the descriptor's position and closes the descriptor.
    let number = try perform("open", folder.path) { openat(folderNumber, ".", flags) }
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
          // An entry must not be copied, because its memory ends with its name and may be shorter than a `dirent`.
          let namePointer = UnsafeRawPointer(entry) + MemoryLayout<dirent>.offset(of: \.d_name)!
          if let name = String(validatingCString: namePointer.assumingMemoryBound(to: CChar.self)) {
            names.append(name)
          }
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
  /// Makes a system call, and retries it if a signal interrupts it.
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

/// An open file or folder, which is closed when the lifetime of this value ends.
struct Descriptor: ~Copyable, Sendable {
  let number: CInt
  let path: String

  init(number: CInt, path: String) {
    self.number = number
    self.path = path
  }

  deinit {
    // Written bytes were synchronized before, so a failed close loses nothing.
    close(number)
  }

  /// Returns the path of a file in this folder.
  func path(of name: String) -> String {
    "\(path)/\(name)"
  }
}

extension FileSystem.Status {
  fileprivate init(_ status: stat) {
    isRegularFile = status.st_mode & S_IFMT == S_IFREG
    size = Int(status.st_size)
    #if canImport(Darwin)
      changeTime = status.st_ctimespec.tv_sec
    #else
      changeTime = status.st_ctim.tv_sec
    #endif
    inode = UInt64(status.st_ino)
    linkCount = Int(status.st_nlink)
  }
}
