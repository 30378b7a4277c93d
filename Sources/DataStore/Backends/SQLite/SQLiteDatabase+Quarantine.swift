#if SQLite
  internal import Foundation

  #if canImport(Darwin)
    internal import Darwin
  #elseif canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  extension SQLiteDatabase {
    /// The suffix of the write-ahead log, without which a database lacks its last commits.
    static let logSuffix = "-wal"
    /// The suffixes of the database and of the files that SQLite keeps beside it.
    private static let suffixes = ["", logSuffix, "-journal", "-shm"]

    /// Quarantines the database, which was found corrupt, and creates a new one.
    ///
    /// - Returns: The error to throw; `nil` if the corrupt database is no longer at its path.
    mutating func replace(because error: SystemError) throws(SystemError) -> StoreError? {
      guard let corrupt = connection else { throw error }
      let descriptor = try fileSystem.openFolder(folder)
      try fileSystem.lock(descriptor, atMost: busyTimeout)
      return corrupt.hasMoved ? nil : try replace(corrupt, in: descriptor, because: error)
    }

    /// Quarantines a corrupt database, and then tries to create a new one, in a locked folder.
    ///
    /// A database of a future layout isn't corrupt, and is left unchanged.
    ///
    /// - Parameter corrupt: The connection to the database, or `nil` if only its log is left.
    /// - Returns: The error to throw, which says where the corrupt database is now, or that the layout is a future one.
    mutating func replace(
      _ corrupt: SQLiteConnection?, in folder: borrowing Descriptor, because error: SystemError
    ) throws(SystemError) -> StoreError {
      // The connection is closed last, because a connection whose file has moved doesn't touch the files at its old
      // path.
      defer { extendLifetime(corrupt) }
      if let corrupt, let refusal = Self.newerLayout(of: corrupt)?.refusal(of: path) { return refusal }
      let movedTo = try quarantineUnlessFailedBefore(in: folder)
      // Otherwise `open` would throw because the database is missing.
      hasExisted = false
      do throws(SystemError) {
        _ = try open(in: folder, creating: true)
      } catch {
        // The next save tries again, and throws if that fails too.
      }
      return .corruptStore(movedTo: movedTo, reason: error.description)
    }

    /// Quarantines the database, unless an earlier attempt failed and the files have not changed since.
    ///
    /// A failed attempt renames files, and then renames them back. That changes the folder, which would wake a watching
    /// store for another attempt, and so on indefinitely. So a failed attempt is remembered, but only while the
    /// database is watched, and until the next call that changes a value.
    ///
    /// - Throws: Also the error of the earlier attempt, if no new attempt is made.
    private mutating func quarantineUnlessFailedBefore(in folder: borrowing Descriptor) throws(SystemError) -> String {
      if let failedQuarantine, try failedQuarantine.files == statuses(in: folder) { throw failedQuarantine.error }
      failedQuarantine = nil
      do throws(SystemError) {
        return try quarantine(in: folder)
      } catch {
        do throws(SystemError) {
          if isWatched { failedQuarantine = FailedQuarantine(files: try statuses(in: folder), error: error) }
        } catch {
          // The error of the quarantine says more. Without the statuses, the attempt isn't remembered.
        }
        throw error
      }
    }

    /// The statuses of the database and of the files beside it, by the suffixes of their names.
    private func statuses(in folder: borrowing Descriptor) throws(SystemError) -> [String: FileSystem.Status] {
      var statuses: [String: FileSystem.Status] = [:]
      for suffix in Self.suffixes {
        do throws(SystemError) {
          statuses[suffix] = try fileSystem.status(of: fileName + suffix, in: folder)
        } catch {
          guard error.code == ENOENT else { throw error }
        }
      }
      return statuses
    }

    /// Quarantines the database and the files beside it, in a locked folder.
    ///
    /// - Returns: The new path of the database file. The new paths of the other files are this path plus their
    ///   suffixes. If only the log existed, there is no file at the path itself.
    private func quarantine(in folder: borrowing Descriptor) throws(SystemError) -> String {
      var attempt = 1
      var quarantineName: String
      repeat {
        quarantineName = SQLiteBackend.quarantineName(for: fileName, at: now(), attempt: attempt)
        attempt += 1
      } while try isTaken(quarantineName, in: folder)
      // Before anything is moved, this throws for an item that isn't a file, such as a folder.
      var existingSuffixes: [String] = []
      for suffix in Self.suffixes where try size(of: fileName + suffix, in: folder) != nil {
        existingSuffixes.append(suffix)
      }
      var movedSuffixes: [String] = []
      do throws(SystemError) {
        // The database is moved first. If the process ends before the log is moved, a later save finds the log without
        // a database and quarantines it too.
        for suffix in existingSuffixes {
          try fileSystem.rename(fileName + suffix, to: quarantineName + suffix, in: folder)
          movedSuffixes.append(suffix)
        }
        try fileSystem.synchronize(folder)
      } catch {
        for suffix in movedSuffixes.reversed() {
          do throws(SystemError) {
            try fileSystem.rename(quarantineName + suffix, to: fileName + suffix, in: folder)
          } catch {
            // The first error says more. Without its log, the database would lack its last commits, so it isn't moved
            // back without the log.
            break
          }
        }
        throw error
      }
      return folder.path(of: quarantineName)
    }

    /// Deletes those files of quarantined databases that `isErased` selects, durably.
    func eraseQuarantine(_ isErased: (StoredItem) -> Bool) throws(SystemError) {
      let descriptor: Descriptor
      do throws(SystemError) {
        descriptor = try fileSystem.openFolder(folder)
      } catch {
        if error.code == ENOENT { return }
        throw error
      }
      try fileSystem.lock(descriptor, atMost: busyTimeout)
      for name in try fileSystem.list(descriptor) where name.hasPrefix(fileName + StoredItem.quarantineMark) {
        // The files of a database belong to no single key.
        let isSelected = try StoredItem.decide(nil, isErased) { () throws(SystemError) in try bytes(of: name) }
        guard isSelected else { continue }
        try fileSystem.unlink(name, in: descriptor)
      }
      // This is done even if no file was deleted now, because an earlier call may have failed after it deleted files.
      try fileSystem.synchronize(descriptor)
    }

    /// Returns the bytes of a quarantined file; empty if it doesn't exist, or isn't a file that a store could have
    /// written.
    private func bytes(of name: String) throws(SystemError) -> Data {
      do throws(SystemError) {
        let descriptor = try fileSystem.openFolder(folder)
        return try fileSystem.read(name, in: descriptor) ?? Data()
      } catch {
        // A file that is too large to be read may be a database that a store has written, so this error is thrown.
        guard error.meansObstacle, error.code != EFBIG else { throw error }
        return Data()
      }
    }

    /// Returns the layout of a database if that is a future layout, and otherwise `nil`.
    ///
    /// This program could mistake a future layout for corruption.
    private static func newerLayout(of connection: SQLiteConnection) -> Layout? {
      do throws(SystemError) {
        if case .newer(let found) = try layout(of: connection) { return .newer(found: found) }
      } catch {
        // The database is corrupt, as was found before.
      }
      return nil
    }

    private func isTaken(_ quarantineName: String, in folder: borrowing Descriptor) throws(SystemError) -> Bool {
      for suffix in Self.suffixes where try size(of: quarantineName + suffix, in: folder) != nil { return true }
      return false
    }
  }
#endif
