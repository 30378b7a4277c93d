#if PostgreSQL
  internal import Dispatch
  internal import Multicast

  extension PostgreSQLConnection {
    /// Sends an element each time a lock is released in this process.
    private static let lockReleases = MulticastRelay<Void>.ofProcess(buffering: .latest)

    /// Acquires an advisory lock, unless it is held.
    ///
    /// The lock belongs to this connection: the server releases it when the connection is lost, and a new connection
    /// doesn't have it.
    func acquireLock(_ name: String) throws(SystemError) -> StoreLockResult {
      guard try tryToLock(name) else { return .held(releases: Self.lockReleases.stream) }
      return .acquired(
        StoreLock {
          // Checks whether the lock is still held: the server keeps it as long as this connection lasts.
          let start = ContinuousClock.now
          return await withCheckedContinuation { continuation in
            self.lockQueue.async { continuation.resume(returning: self.isAlive(since: start)) }
          }
        } unlock: {
          self.lockQueue.async {
            self.unlock(name)
            Self.lockReleases.send(())
          }
        })
    }
  }
#endif
