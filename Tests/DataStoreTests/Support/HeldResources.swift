#if os(Linux)
  import Foundation

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// What this process holds in a folder, as the system reports it in `/proc`.
  struct HeldResources: Equatable, CustomStringConvertible {
    /// The locked files, each as its name and the kind of the lock, such as `store.sqlite: POSIX READ`; sorted.
    var locks: [String] = []
    /// The names of the open files, sorted, with one entry for each descriptor.
    var descriptors: [String] = []
    /// Whether an inotify instance watches the folder.
    var isWatched = false

    static let nothing = HeldResources()

    /// Reads what the process holds in a folder and its files.
    ///
    /// The folder itself has the name `.`.
    static func of(_ folder: URL) throws -> HeldResources {
      var path = folder.path(percentEncoded: false)
      if path.hasSuffix("/") { path.removeLast() }
      var inodes: [String: String] = [:]
      for name in ["."] + (try FileManager.default.contentsOfDirectory(atPath: path)) {
        var status = stat()
        guard lstat("\(path)/\(name)", &status) == 0 else { continue }
        inodes["\(status.st_ino)"] = name
      }
      var held = HeldResources()
      // The system gives 4 KB at a time, and skips a line if another process ends a lock meanwhile. So the list is read
      // several times.
      var locks: Set<String> = []
      for _ in 1...3 { locks.formUnion(ownLocks(inodes)) }
      held.locks = locks.sorted()
      for number in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
        // A descriptor of another test may be closed meanwhile.
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)") else {
          continue
        }
        if target == path { held.descriptors.append(".") }
        if target.hasPrefix("\(path)/") { held.descriptors.append(String(target.dropFirst(path.count + 1))) }
        if target.contains("inotify"), watches(number, inodes: inodes) { held.isWatched = true }
      }
      held.descriptors.sort()
      // A lock ends with its descriptor. Without one, the lock is on a file of another volume with the same number.
      held.locks.removeAll { lock in !held.descriptors.contains { lock.hasPrefix("\($0): ") } }
      return held
    }

    private static func ownLocks(_ inodes: [String: String]) -> Set<String> {
      var locks: Set<String> = []
      for line in lines(of: "/proc/locks") {
        // 1: POSIX  ADVISORY  READ 1105 fe:00:16245506 128 128
        let fields = line.split(separator: " ")
        guard fields.count >= 6, fields[4] == "\(getpid())" else { continue }
        guard let inode = fields[5].split(separator: ":").last, let name = inodes[String(inode)] else { continue }
        locks.insert("\(name): \(fields[1]) \(fields[3])")
      }
      return locks
    }

    /// Returns the lines of a file of the system, which has no size and of which Foundation reads only the beginning.
    private static func lines(of path: String) -> [Substring] {
      // A descriptor of another test may be closed meanwhile, and its file with it.
      guard let file = fopen(path, "re") else { return [] }
      defer { fclose(file) }
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4096)
      while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }

    /// Returns whether an inotify instance watches the folder, which has the name `.` among the inodes.
    private static func watches(_ number: String, inodes: [String: String]) -> Bool {
      lines(of: "/proc/self/fdinfo/\(number)").contains { line in
        // inotify wd:1 ino:f7e3ff sdev:fe00000 mask:ec6 ...
        let inode = line.split(separator: " ").first { $0.hasPrefix("ino:") }?.dropFirst(4)
        return inode.flatMap { UInt64($0, radix: 16) }.map { inodes["\($0)"] == "." } ?? false
      }
    }

    /// The targets of the process's descriptors of a kind, such as `socket:` or `anon_inode:inotify`.
    static func descriptors(ofKind prefix: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { number in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)"))
          .flatMap { $0.hasPrefix(prefix) ? $0 : nil }
      }
    }

    var description: String { "locks: \(locks), descriptors: \(descriptors), watched: \(isWatched)" }
  }
#endif
