internal import CMalloc

/// The C library's allocator.
enum Allocator {
  /// Makes it keep what is freed.
  ///
  /// glibc gives memory back to the system at thresholds that follow what the program does. Whether a send pays for
  /// fresh pages would depend on what ran before it.
  static func keepFreedMemory() {
    #if canImport(Glibc)
      mallopt(M_TRIM_THRESHOLD, .max)
      mallopt(M_MMAP_THRESHOLD, 32 << 20)
    #endif
  }
}
