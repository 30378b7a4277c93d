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

  /// Ends a lock before its descriptor is let go.
  func unlock(_ folder: borrowing Descriptor) {
    // What is locked can be unlocked. And if it could not, it would be as soon as the descriptor is closed.
    _ = flock(folder.number, LOCK_UN)
  }
}

extension SystemError {
  /// Whether another process kept the whole store locked for as long as a call waits.
  var isLockedOut: Bool {
    #if SQLite
      if isBusy { return true }
    #endif
    return source == .operatingSystem && operation == "flock" && code == EWOULDBLOCK
  }

  /// Whether the volume knows no locks.
  var meansNoLocks: Bool { [ENOTSUP, EOPNOTSUPP, ENOSYS, ENOLCK, EINVAL].contains(code) }
}
