public import Foundation

/// A store in a folder, one file for each key: the default choice.
///
/// - **Durability**: A change that was acknowledged survives the end of the process and a loss of power at any instant.
///   One that wasn't leaves the old value or the new one whole, never a mixture.
/// - **Atomicity**: A commit of several keys writes a journal before the first of them changes. The next
///   process that opens the folder finishes a commit that was interrupted, so a process that is killed at any instant
///   leaves all or none.
/// - **Privacy**: Files and folders are made for their owner only (permissions 0600 and 0700). Nothing outside the folder
///   is read or written, whatever the key, and symbolic links in it are not followed.
/// - **External changes** are noticed at once where the file system reports them. Those of networks often don't, and no
///   system reports that a folder above this one was renamed: then the next call notices. Calls that change something
///   take turns with those of other processes, by a lock on the folder. One that doesn't get the lock within five
///   seconds throws, and so do the commits that wait behind it.
/// - **Size**: A value may have up to a gibibyte. A larger file is left where it is, and calls for it throw.
/// - **Other files** in the folder are left alone.
/// - Complexity: A save synchronises a file and the folder. A commit of *n* files synchronises *n* + 1 files, and the
///   folder twice.
public struct FileStore: StoreFacade {
  package let base: BackedStore<FileBackend>

  /// Creates a store in a folder.
  ///
  /// Nothing happens on disk until the first call. The first save or lock makes the folder, and those above it, if they
  /// are missing. A folder that vanishes later isn't made again, because its values would silently be gone: from then
  /// on calls throw.
  ///
  /// - Parameters:
  ///   - folder: The folder, as a file URL. The store should be alone in it.
  ///   - now: Returns the present time, for ``StoredValue/savedAt``.
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

  /// Erases what is kept of some keys, so that nothing of it is left.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await base.erase(where: isErased)
  }

  /// Locks a name, so that one of several processes can do what only one may do.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    try await base.acquireLock(name)
  }
}
