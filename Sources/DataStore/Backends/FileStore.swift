public import Foundation

/// A store in a folder, one file for each key: the default choice.
///
/// - **Durability**: A save that returned survives the end of the process and a loss of power at any instant. One that
///   did not return leaves the old value or the new one whole, never a mixture.
/// - **Privacy**: Files and folders are made for their owner only (modes 0600 and 0700). Nothing outside the folder is
///   read or written, whatever the key, and symbolic links in it are not followed.
/// - **Other processes** may use the folder at the same time; what they change is seen at once, where the file system
///   tells. Those of networks often tell nothing, and nothing tells when a folder above this one gets another name: then
///   the next call sees it. Calls that change something take turns, by a lock on the folder that each holds for an
///   instant; one that cannot have it for five seconds throws, and so do the saves that wait behind it.
/// - **Size**: A value may have up to a gibibyte. A file that is larger is left where it is, and calls for it throw.
/// - **Other files** in the folder are left alone.
public typealias FileStore = BackedStore<FileBackend>

extension BackedStore where Backend == FileBackend {
  /// Creates a store in a folder.
  ///
  /// Nothing happens on disk until the first call. The first save makes the folder, and those above it, where they are
  /// missing. A folder that vanishes later is not made again, because its values would silently be gone: from then on
  /// calls throw.
  ///
  /// - Parameters:
  ///   - folder: The folder, as a file URL. Let it be the store's own.
  ///   - now: Tells the time, for ``StoredValue/savedAt``.
  public init(folder: URL, now: @escaping @Sendable () -> Date = { Date() }) {
    self.init(backend: FileBackend(folder: folder), now: now)
  }
}
