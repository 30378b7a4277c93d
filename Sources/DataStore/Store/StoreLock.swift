public import Multicast

/// A name that a store has locked, until this object is released or the process ends.
///
/// It excludes only other locks of the same name in the same place, in this process and in any other. Calls of the store
/// go on as if there was none. ``KeyValueStore/acquireLock(_:)`` makes one.
public final class StoreLock: Sendable {
  private let check: (@Sendable () async -> Bool)?
  private let unlock: @Sendable () -> Void

  /// Creates a lock, for a store of your own.
  ///
  /// - Parameters:
  ///   - check: Whether the name is still locked; `nil` if nothing frees it but `unlock` and the end of the process.
  ///   - unlock: Frees the name. It is called once, on any thread.
  public init(check: (@Sendable () async -> Bool)? = nil, unlock: @escaping @Sendable () -> Void) {
    (self.check, self.unlock) = (check, unlock)
  }

  deinit {
    unlock()
  }

  /// Whether the name is still locked.
  ///
  /// A server frees the locks of a client that it has lost, perhaps long before the client knows. A lock that was lost stays
  /// lost: release it and acquire another one.
  ///
  /// - Returns: `false` also if it isn't known.
  /// - Complexity: O(1) for a lock of this process's machine. For one of a server, an exchange with it.
  public func isHeld() async -> Bool {
    await check?() ?? true
  }
}

/// What became of an attempt to lock a name; see ``KeyValueStore/acquireLock(_:)``.
public enum StoreLockResult: Sendable {
  /// The name is locked until the lock is released.
  case acquired(StoreLock)

  /// Another store in the same place has locked the name, or the same one has.
  ///
  /// `releases` has an element whenever a lock may have been released in this process. Nothing reports that another
  /// process has released one, or has ended.
  case held(releases: MulticastStream<Void, Never>)

  /// The store, or the volume that it is on, knows no locks.
  case unsupported
}
