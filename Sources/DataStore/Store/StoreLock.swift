public import Multicast

/// A lock on a name, which is held until this object is released or the process ends.
///
/// A lock that a server keeps can be lost earlier; see ``isHeld()``.
///
/// A lock excludes only other locks on the same name in the same place, in this process and in any other. It has no
/// effect on loads, saves and other calls of the store. ``KeyValueStore/acquireLock(_:)`` acquires a lock.
public final class StoreLock: Sendable {
  private let check: (@Sendable () async -> Bool)?
  private let unlock: @Sendable () -> Void

  /// Creates a lock, for your own implementation of a store.
  ///
  /// - Parameters:
  ///   - check: Returns whether the lock is still held. Pass `nil` if it is held until `unlock` is called or the
  ///     process exits, crashes or is killed.
  ///   - unlock: Unlocks the name. It is called once, on any thread.
  public init(check: (@Sendable () async -> Bool)? = nil, unlock: @escaping @Sendable () -> Void) {
    (self.check, self.unlock) = (check, unlock)
  }

  deinit {
    unlock()
  }

  /// Returns whether the lock is still held.
  ///
  /// A server releases the locks of a client whose connection is lost, perhaps long before the client notices. A lost
  /// lock is never held again: release it and acquire another one.
  ///
  /// - Returns: Whether the lock is held; `false` also if that can't be determined.
  /// - Complexity: O(1) for a lock on this machine. For a lock of a server, one exchange with the server.
  public func isHeld() async -> Bool {
    await check?() ?? true
  }
}

/// The result of an attempt to lock a name; see ``KeyValueStore/acquireLock(_:)``.
public enum StoreLockResult: Sendable {
  /// The name is locked until the lock is released.
  case acquired(StoreLock)

  /// The name is already locked, by this store or by another one in the same place.
  ///
  /// `releases` sends an element whenever this process may have released a lock, on this name or another one. It
  /// doesn't report that another process has released a lock or has ended.
  case held(releases: MulticastStream<Void, Never>)

  /// The store, or the volume of its files, doesn't support locks.
  case unsupported
}
