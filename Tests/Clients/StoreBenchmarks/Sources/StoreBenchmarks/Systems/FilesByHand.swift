internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The minimum of system calls that replace a file durably.
struct FilesByHand: ~Copyable {
  private let folder: Int32

  init(in folder: URL) throws {
    self.folder = try Self.check("open", open(folder.path(percentEncoded: false), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
  }

  deinit {
    _ = close(folder)
  }

  /// Writes a new file, synchronizes it, renames it over the old one, and synchronizes the folder.
  func replace(_ name: String, by bytes: Data) throws {
    let new = "\(name).new"
    let file = try Self.check("openat", openat(folder, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
    defer { _ = close(file) }
    let count = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    guard count == bytes.count else { throw BenchmarkError.systemCall("write", code: errno) }
    _ = try Self.check("fsync", fsync(file))
    _ = try Self.check("renameat", renameat(folder, new, folder, name))
    _ = try Self.check("fsync", fsync(folder))
  }

  private static func check(_ name: String, _ result: Int32) throws -> Int32 {
    guard result >= 0 else { throw BenchmarkError.systemCall(name, code: errno) }
    return result
  }
}
