internal import Synchronization

/// Shows the thread sanitizer an order between threads that is already there, and that it cannot see.
///
/// The sanitizer knows what is compiled with it. What the toolchain's libraries do is hidden from it: that a `Mutex`
/// waits for another thread, on Linux, and that a continuation which is resumed before its task has come to wait is
/// found resumed. Without this, the sanitizer would report races in users' apps where there are none.
///
/// Nothing in release builds.
struct SanitizerOrder: ~Copyable {
  #if DEBUG
    private let releases = Atomic<Int>(0)
  #endif

  /// What came before this comes before what follows a later ``acquire()``.
  @inline(__always)
  borrowing func release() {
    #if DEBUG
      // Changes the value instead of storing one, because a store would hide what other threads released before.
      releases.wrappingAdd(1, ordering: .releasing)
    #endif
  }

  @inline(__always)
  borrowing func acquire() {
    #if DEBUG
      _ = releases.load(ordering: .acquiring)
    #endif
  }
}
