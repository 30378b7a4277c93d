internal import Multicast

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

extension FileSystem {
  /// Waits for the only lock on a folder, which ends when the descriptor is let go.
  ///
  /// It excludes only callers that ask for it, in this process and in any other.
  func lock(_ folder: borrowing Descriptor, atMost timeout: Duration) throws(SystemError) {
    let number = folder.number
    let end = ContinuousClock.now + timeout
    var delay: UInt32 = 50
    while true {
      do throws(SystemError) {
        try perform("flock", folder.path) { flock(number, LOCK_EX | LOCK_NB) }
        return
      } catch {
        guard error.code == EWOULDBLOCK, .now < end else { throw error }
      }
      usleep(delay)
      delay = min(2 * delay, 1_000)
    }
  }

  /// Locks a file if no other process has it locked.
  ///
  /// - Returns: Whether the file is locked now; `nil` where files can't be locked.
  func tryToLock(_ file: borrowing Descriptor) throws(SystemError) -> Bool? {
    let number = file.number
    do throws(SystemError) {
      try perform("flock", file.path) { flock(number, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.code == EWOULDBLOCK { return false }
      if error.meansNoLocks { return nil }
      throw error
    }
  }

  /// Locks a file of a folder, which stays in it afterwards.
  ///
  /// A lock file is never removed: another process may have opened it in the instant before, and would lock a file that
  /// has no name.
  func acquireLock(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> StoreLockResult {
    let file = try openLockFile(name, in: folder)
    switch try tryToLock(file) {
    case false: return .held(releases: LockedFile.releases.stream)
    case nil: return .unsupported
    case true:
      let locked = LockedFile(file)
      return .acquired(StoreLock { locked.close() })
    }
  }

  /// Ends a lock before its descriptor is let go.
  func unlock(_ folder: borrowing Descriptor) {
    // What is locked can be unlocked. And if it could not, it would be as soon as the descriptor is closed.
    _ = flock(folder.number, LOCK_UN)
  }
}

/// A file that is locked as long as it is open.
private final class LockedFile: Sendable {
  /// Has an element whenever a file was closed that this process had locked.
  static let releases = MulticastRelay<Void>(buffering: .latest)

  private let file: Lock<Descriptor?>

  init(_ file: consuming Descriptor) {
    self.file = Lock(file)
  }

  func close() {
    file.withLock { $0 = nil }
    Self.releases.send(())
  }
}

extension SystemError {
  /// Whether another process kept the whole store locked for as long as a call waits.
  var isLockedOut: Bool {
    #if SQLite
      if isBusy { return true }
    #endif
    if case .postgreSQL("55P03", _) = source { return true }
    return source == .operatingSystem && operation == "flock" && code == EWOULDBLOCK
  }

  /// Whether the volume knows no locks.
  var meansNoLocks: Bool { [ENOTSUP, EOPNOTSUPP, ENOSYS, ENOLCK, EINVAL, EBADF].contains(code) }
}
