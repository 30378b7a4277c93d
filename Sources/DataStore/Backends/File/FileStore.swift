public import Foundation

/// A store in a folder, with one file for a value, or several for a ``PartitionedValue``: the default choice.
///
/// - **Durability**: An acknowledged change survives a crash or `SIGKILL` of the process and a loss of power, at any
///   instant. A change that was not acknowledged leaves either the old value or the new one, never a mixture.
/// - **Atomicity**: A commit of several keys writes a journal before it changes the first of them. The next process
///   that opens the folder finishes an interrupted commit, so a process that is killed at any instant leaves all
///   changes or none.
/// - **Privacy**: Only the owner can access the files and new folders (permissions 0600 and 0700). The store reads and
///   writes nothing outside the folder for any key, and follows no symbolic links in it.
/// - **External changes** are noticed without a call while the store is observed, if the file system reports them.
///   Network file systems often don't, and no system reports that a parent of the folder was renamed. In these cases,
///   the next call notices the changes.
/// - **Locking**: Calls that change a value take turns with those of other processes and stores, by a lock on the
///   folder. A call that doesn't get the lock within five seconds throws. Calls whose commits would have been written
///   together with the commit of that call throw too; see ``BackedStore``.
/// - **Size**: Each file of a value may have up to one gibibyte. A larger file is left unchanged, and calls for its key
///   throw.
/// - **Other files** in the folder are left unchanged.
/// - Complexity: A save that changes only one file synchronizes that file and the folder. A save or commit that changes
///   several files synchronizes each file that it writes, the journal, and the folder twice.
public struct FileStore: WrappingStore {
  package let base: BackedStore<FileBackend>

  /// Creates a store in a folder.
  ///
  /// Nothing happens on disk until the first call. The first save or lock creates the folder and all missing parents.
  /// If the folder is removed later, calls throw. The store doesn't create it again, because a new folder would hide
  /// the loss of the values.
  ///
  /// - Parameters:
  ///   - folder: The folder, as a file URL. Only file stores should use it, in any number of processes.
  ///   - now: Returns the current time, for ``StoredValue/savedAt`` and the names of quarantined bytes.
  public init(folder: URL, now: @escaping @Sendable () -> Date = { Date() }) {
    self.init(folder: folder, fileSystem: FileSystem(), now: now)
  }

  package init(
    folder: URL, fileSystem: FileSystem, lockTimeout: Duration = .seconds(5),
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    base = BackedStore(
      backend: FileBackend(folder: folder, fileSystem: fileSystem, lockTimeout: lockTimeout), now: now)
  }

  /// Erases items so that no trace of them is left in the folder.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await base.erase(where: isErased)
  }

  /// Locks a name, for work that only one of several processes may do.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    try await base.acquireLock(name)
  }
}
