internal import Synchronization

/// A mutex and the state it guards.
///
/// It differs from `Mutex<State>` in two ways:
/// - The state has an allocation of its own, so that the type of the mutex doesn't depend on `State`. If `State` is
///   generic, locking a `Mutex<State>` looks up the type's metadata each time, which takes longer than the rest of the
///   call.
/// - On Linux, `Mutex` waits for another thread in code of the toolchain's library, which the thread sanitizer doesn't
///   instrument. The sanitizer would therefore report a false race between two critical sections. ``SanitizerOrder``
///   shows it the order of the sections.
///
/// Unchecked, because the state is reached through a pointer. ``withLock(_:)`` uses that pointer only with the mutex
/// locked. `init` and `deinit` use it while no other thread refers to the lock.
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

  /// Runs `body` with exclusive access to the state.
  ///
  /// `body` must neither block nor call user code.
  @inline(__always)
  package borrowing func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    // The result is passed through a variable, because `Mutex.withLock(_:)` can return only a `sending` result.
    var result: Result?
    mutex.withLock { _ in
      order.acquire()
      result = body(&state.pointee)
      order.release()
    }
    #if DEBUG
      CriticalSections.didLeave?()
    #endif
    return result!
  }
}

#if DEBUG
  /// A hook with which a test runs code between two critical sections, where another thread might run.
  ///
  /// If two critical sections should be one, a test with several threads shows the defect only by chance.
  package enum CriticalSections {
    /// A closure that runs each time the current task, or the current synchronous call, has unlocked a ``Lock``.
    ///
    /// It may run while the caller holds another lock.
    @TaskLocal package static var didLeave: (@Sendable () -> Void)?
  }
#endif
