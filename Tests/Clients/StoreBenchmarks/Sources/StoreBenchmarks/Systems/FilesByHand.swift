internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The minimum of system calls that replace a file durably.
struct FilesByHand: ~Copyable {
  private let folderDescriptor: Int32

  init(in folder: URL) throws {
    folderDescriptor = try Self.check(
      "open", open(folder.path(percentEncoded: false), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
  }

  deinit {
    _ = close(folderDescriptor)
  }

  /// Writes a new file, synchronizes it, renames it over the old one, and synchronizes the folder.
  func replace(_ name: String, by bytes: Data) throws {
    let newName = "\(name).new"
    let fileDescriptor = try Self.check(
      "openat", openat(folderDescriptor, newName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
    defer { _ = close(fileDescriptor) }
    var rest = bytes
    // One call may write only a part of the bytes.
    while !rest.isEmpty {
      let writtenCount = rest.withUnsafeBytes { write(fileDescriptor, $0.baseAddress, $0.count) }
      guard writtenCount > 0 else { throw BenchmarkError.systemCall("write", code: writtenCount < 0 ? errno : EIO) }
      rest = rest.dropFirst(writtenCount)
    }
    try Self.synchronize(fileDescriptor)
    _ = try Self.check("renameat", renameat(folderDescriptor, newName, folderDescriptor, name))
    try Self.synchronize(folderDescriptor)
  }

  private static func synchronize(_ descriptor: Int32) throws {
    #if canImport(Darwin)
      // On Darwin, `fsync` leaves the bytes in the drive's cache.
      _ = try check("fcntl", fcntl(descriptor, F_FULLFSYNC))
    #else
      _ = try check("fsync", fsync(descriptor))
    #endif
  }

  private static func check(_ call: String, _ result: Int32) throws -> Int32 {
    guard result >= 0 else { throw BenchmarkError.systemCall(call, code: errno) }
    return result
  }
}
