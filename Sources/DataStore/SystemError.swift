#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A call to the operating system that failed.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The system's error number, `errno`.
  public let code: CInt

  /// Which call failed, such as `fsync`.
  public let operation: String

  /// The file, folder or other place it was about.
  public let path: String

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The system's error number, `errno`.
  ///   - operation: Which call failed.
  ///   - path: The file, folder or other place it was about.
  public init(code: CInt, operation: String, path: String) {
    self.code = code
    self.operation = operation
    self.path = path
  }

  /// Says what failed, where, why, and what helps.
  public var description: String {
    "\(operation) of \(path) failed: \(String(cString: strerror(code))) (errno \(code)). \(advice)"
  }

  private var advice: String {
    switch code {
    case ENOSPC, EDQUOT: "Free some space, then try again."
    case EACCES, EPERM: "Check the owner and the permissions of the folder, or choose another one."
    case EROFS: "The volume is read-only: choose a folder on another one."
    case ENOENT: "It has gone: put it back or choose another folder, then open the store again."
    case ENOTDIR, EEXIST: "A part of the path is not a folder: choose another folder."
    case ELOOP: "It is a symbolic link, which a store does not follow: replace it by the file itself."
    case EISDIR, EINVAL: "It is not something a store can use: move it away or choose another place."
    case EMFILE, ENFILE: "Too many files are open: close some, then try again."
    default: "Try again; if it stays, check the volume or choose another folder."
    }
  }
}
