internal import Synchronization

/// Makes an existing order between threads visible to the thread sanitizer.
///
/// The sanitizer instruments only the code that is compiled with it, and so misses synchronization in the toolchain's
/// libraries. On Linux, it misses a `Mutex` that waits for another thread. On every platform, it misses a continuation
/// that is resumed before its task has suspended. Without this type, the sanitizer would report false races in apps
/// that use this module.
///
/// In release builds, this type does nothing.
struct SanitizerOrder: ~Copyable {
  #if DEBUG
    private let releases = Atomic<Int>(0)
  #endif

  /// Orders the calling thread's earlier accesses before the accesses that follow a later ``acquire()``.
  @inline(__always)
  borrowing func release() {
    #if DEBUG
      // A read-modify-write rather than a store, because a store would discard the earlier releases of other threads.
      releases.wrappingAdd(1, ordering: .releasing)
    #endif
  }

  /// Orders the accesses that preceded any earlier ``release()`` before the calling thread's later accesses.
  @inline(__always)
  borrowing func acquire() {
    #if DEBUG
      _ = releases.load(ordering: .acquiring)
    #endif
  }
}
