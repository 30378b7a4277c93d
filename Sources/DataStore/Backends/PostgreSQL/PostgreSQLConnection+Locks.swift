#if PostgreSQL
  internal import Dispatch
  internal import Multicast

  extension PostgreSQLConnection {
    /// Has an element whenever a lock was released in this process.
    private static let releases = MulticastRelay<Void>(buffering: .latest)
    /// Where locks are asked after and released, as no task may wait for a server on a thread that tasks share.
    private static let queue = DispatchQueue(label: "DataStore.PostgreSQLLocks", attributes: .concurrent)

    /// Takes an advisory lock, unless it is held.
    ///
    /// The server frees it when it loses this connection. So it belongs to this one, and a new connection has none.
    func acquireLock(_ name: String) throws(SystemError) -> StoreLockResult {
      guard try tryToLock(name) else { return .held(releases: Self.releases.stream) }
      return .acquired(
        StoreLock {
          await withCheckedContinuation { continuation in
            Self.queue.async { continuation.resume(returning: self.isAlive) }
          }
        } unlock: {
          Self.queue.async {
            self.unlock(name)
            Self.releases.send(())
          }
        })
    }
  }
#endif
