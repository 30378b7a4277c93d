internal import DataStore

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A command that limits the size of the files that the process can write, to simulate a full disk.
extension TestChild {
  /// Saves a small value, then one that exceeds the limit, then a small value again, and prints the results.
  static func fillDisk(limit: Int, in store: any KeyValueStore) async throws {
    let key = StoreKey<String>("text")
    let storedSmall = try await store.save("small", for: key)
    // Otherwise, a write beyond the limit would end the process instead of failing.
    signal(SIGXFSZ, SIG_IGN)
    var limits = rlimit(rlim_cur: rlim_t(limit), rlim_max: rlim_t(limit))
    guard setrlimit(fileSizeResource, &limits) == 0 else { fail("setrlimit: \(errno)") }
    do throws(StoreError) {
      try await store.save(String(repeating: "large", count: limit), for: key)
      say("saved")
    } catch {
      guard case .writeFailed(let cause) = error else { fail("\(error)") }
      say("refused \(cause.operation) \(cause.code)")
    }
    let loaded = try await store.load(key)
    say(loaded == storedSmall ? "intact" : "lost")
    let saved = try await store.save("small again", for: key)
    say("saved \(saved.revision)")
  }

  #if canImport(Glibc)
    private static var fileSizeResource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_FSIZE.rawValue) }
  #else
    private static var fileSizeResource: CInt { RLIMIT_FSIZE }
  #endif
}
