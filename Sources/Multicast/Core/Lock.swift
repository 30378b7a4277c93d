internal import Synchronization

/// A mutex and the state it guards.
///
/// It differs from `Mutex<State>` in two ways, each for a reason that is measured or seen:
/// - The state is apart from the mutex, which so has a type that does not depend on the state's. Where `State` is
///   generic, locking a `Mutex<State>` looks up its metadata each time, which takes longer than all the rest of it.
/// - On Linux the part of `Mutex` that waits for another thread is in the toolchain's library, which the thread sanitizer
///   does not see, so it would take what two threads do in turn for a race. ``SanitizerOrder`` shows it.
///
/// Unchecked, because the state is reached through a pointer: only ``withLock(_:)`` uses it, with the mutex locked, and
/// `deinit`, when no other thread has the lock.
package struct Lock<State: ~Copyable>: ~Copyable, @unchecked Sendable {
  private let mutex = Mutex(())
  private let state: UnsafeMutablePointer<State>
  private let order = SanitizerOrder()

  package init(_ state: consuming sending State) {
    self.state = .allocate(capacity: 1)
    self.state.initialize(to: state)
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Runs `body` alone with the state.
  ///
  /// It may neither wait, nor call foreign code.
  @inline(__always)
  package borrowing func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    var result: Result?
    mutex.withLock { _ in
      order.acquire()
      result = body(&state.pointee)
      order.release()
    }
    return result!
  }
}
