internal import Multicast

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

extension FileSystem {
  /// Waits for the exclusive lock of a folder, and takes it.
  ///
  /// The lock is held until ``unlock(_:)`` is called or the descriptor is closed. It is advisory: it excludes only
  /// callers that acquire it, in this process and in every other one.
  ///
  /// - Throws: `EWOULDBLOCK` if the lock is still held after the timeout, or any other error of `flock`.
  func lock(_ folder: borrowing Descriptor, atMost timeout: Duration) throws(SystemError) {
    let number = folder.number
    let deadline = ContinuousClock.now + timeout
    // In microseconds.
    var delay: UInt32 = 50
    while true {
      do throws(SystemError) {
        try perform("flock", folder.path) { flock(number, LOCK_EX | LOCK_NB) }
        return
      } catch {
        guard error.code == EWOULDBLOCK, .now < deadline else { throw error }
      }
      usleep(delay)
      delay = min(2 * delay, 1_000)
    }
  }

  /// Locks a file unless it is locked already.
  ///
  /// - Returns: Whether this call locked the file; `nil` if the volume doesn't support locks.
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

  /// Locks a file in a folder; if the file is missing, creates it first.
  ///
  /// A lock file is never removed. Otherwise a process that has just opened it could lock a file without a name, while
  /// another process locks a new file of the same name.
  func acquireLock(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> StoreLockResult {
    let file = try openLockFile(name, in: folder)
    switch try tryToLock(file) {
    case false: return .held(releases: LockedFile.releases.stream)
    case nil: return .unsupported
    case true:
      let lockedFile = LockedFile(file)
      return .acquired(StoreLock { lockedFile.close() })
    }
  }

  /// Releases the lock of a folder whose descriptor stays open.
  func unlock(_ folder: borrowing Descriptor) {
    // Unlocking a locked folder can't fail. Even if it did, the lock would end when the descriptor is closed.
    _ = flock(folder.number, LOCK_UN)
  }
}

/// A file that is locked while it is open.
private final class LockedFile: Sendable {
  /// Sends an element each time this process has closed a `LockedFile`.
  ///
  /// It lasts as long as the process, so it doesn't count as a live channel.
  static let releases = MulticastRelay<Void>.ofProcess(buffering: .latest)

  /// The open file, or `nil` after ``close()``; the mutex isn't the lock of the file.
  private let descriptor: Lock<Descriptor?>

  init(_ file: consuming Descriptor) {
    descriptor = Lock(file)
  }

  func close() {
    descriptor.withLock { $0 = nil }
    Self.releases.send(())
  }
}

extension SystemError {
  /// Whether another process or store held the lock of the whole medium for longer than a call waits.
  var isLockout: Bool {
    #if SQLite
      if isBusy { return true }
    #endif
    // This `SQLSTATE` is `lock_not_available`.
    if case .postgreSQL("55P03", _) = source { return true }
    return source == .operatingSystem && operation == "flock" && code == EWOULDBLOCK
  }

  /// Whether the volume doesn't support locks.
  ///
  /// `EBADF` counts, because a network volume may grant an exclusive lock only on a descriptor that is open for
  /// writing. A folder's descriptor never is.
  var meansNoLocks: Bool { [ENOTSUP, EOPNOTSUPP, ENOSYS, ENOLCK, EINVAL, EBADF].contains(code) }
}
