import Dispatch
import Foundation
import Multicast
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

extension FolderHub {
  /// Returns when the hub has completed all earlier calls.
  func completeCalls() {}
}

/// Watches that share a hub, with a simulated operating system.
@Suite(.timeLimit(.minutes(15))) struct FolderHubTests {
  private let monitor: SimulatedMonitor
  private let hub: FolderHub

  init() {
    monitor = SimulatedMonitor(folders: ["/": 1, "/a": 2, "/b": 3])
    hub = FolderHub(monitor: monitor)
  }

  private final class Counter: Sendable {
    private let value = Lock(0)
    var count: Int { value.withLock { $0 } }
    func increase() { value.withLock { $0 += 1 } }
  }

  /// Makes file system calls fail with the error codes that the current rule, if any, returns.
  private final class Faults: Sendable {
    let rule = Lock<(@Sendable (FileSystem.Call) -> CInt?)?>(nil)
    var fileSystem: FileSystem { FileSystem { call in self.rule.withLock { $0 }?(call) } }
  }

  private func watch(
    _ folder: String, reportsWrites: Bool = false, fileSystem: FileSystem = FileSystem(),
    onChange: @escaping @Sendable () -> Void = {}
  ) throws -> FolderWatch {
    try FolderWatch(
      folder: folder, ownPrefix: ".own-", reportsWrites: reportsWrites, fileSystem: fileSystem, hub: hub,
      onChange: onChange)
  }

  @Test func `The monitor starts with the first watch, and stops after the last watch has ended`() async throws {
    var watches = [try watch("/a"), try watch("/a"), try watch("/b")]
    #expect(monitor.withState { $0.startCount } == 1)
    #expect(monitor.watchedNumbers == [2, 3])
    watches.removeFirst()
    await hub.completeCalls()
    #expect(monitor.watchedNumbers == [2, 3])
    watches.removeFirst()
    await hub.completeCalls()
    #expect(monitor.watchedNumbers == [3])
    #expect(monitor.withState { $0.isStarted })
    watches = []
    await hub.completeCalls()
    #expect(monitor.withState { !$0.isStarted })
    watches = [try watch("/a")]
    #expect(monitor.withState { $0.startCount } == 2)
    #expect(monitor.watchedNumbers == [2])
    extendLifetime(watches)
  }

  @Test func `If a watch can't start, its initializer throws, and nothing stays watched`() throws {
    let fileSystem = FileSystem { $0.operation == "watch" && $0.path == "/" ? EACCES : nil }
    #expect(throws: SystemError(code: EACCES, operation: "watch", path: "/")) {
      try watch("/missing/folder", fileSystem: fileSystem)
    }
    #expect(monitor.withState { !$0.isStarted })
  }

  @Test(arguments: ["/a", "/missing"])
  func `A watch that cannot start does not affect other watches`(folder: String) throws {
    let other = try watch(folder)
    let watched = monitor.watchedNumbers
    let results = Lock<[CInt?]>([nil, nil, EACCES])
    let fileSystem = FileSystem { _ in results.withLock { $0.removeFirst() } }
    // The first call finds no folder, and the second one watches its parent. The third one tries the folder again, and
    // fails.
    #expect(throws: SystemError(code: EACCES, operation: "watch", path: "/another")) {
      try watch("/another", fileSystem: fileSystem)
    }
    #expect(monitor.watchedNumbers == watched)
    extendLifetime(other)
  }

  @Test func `The nearest existing ancestor is watched until the folder exists`() throws {
    let reports = Counter()
    let watch = try watch("/outer/inner", onChange: reports.increase)
    #expect(monitor.watchedNumbers == [1])
    monitor.queue(.changed("other", .created), of: 1)
    monitor.report()
    monitor.withState { $0.folders["/outer"] = WatchDescriptor(number: 4) }
    monitor.queue(.changed("outer", .created), of: 1)
    monitor.report()
    #expect(monitor.watchedNumbers == [4])
    #expect(reports.count == 0)
    monitor.withState { $0.folders["/outer/inner"] = WatchDescriptor(number: 5) }
    monitor.queue(.changed("inner", .movedHere(rename: 1)), of: 4)
    monitor.report()
    #expect(monitor.watchedNumbers == [5])
    #expect(reports.count == 1)
    #expect(try watch.takeChangedFiles() == nil)
    monitor.withState { $0.folders["/outer/inner"] = nil }
    monitor.queue(.folderLost, of: 5)
    #expect(try watch.takeChangedFiles() == nil)
    #expect(monitor.watchedNumbers == [4])
  }

  @Test func `A parent folder that another watch uses stays watched`() throws {
    let (above, watch) = (try watch("/"), try watch("/missing"))
    #expect(monitor.watchedNumbers == [1])
    #expect(monitor.withState { $0.watched.values.first } == [.files(reportsWrites: false), .appearance])
    monitor.withState { $0.folders["/missing"] = WatchDescriptor(number: 4) }
    watch.checkFolder()
    #expect(monitor.watchedNumbers == [1, 4])
    #expect(try watch.takeChangedFiles() == nil)
    monitor.queue(.changed("file", .removed), of: 1)
    #expect(try watch.takeChangedFiles() == [])
    #expect(try above.takeChangedFiles() == ["file"])
  }

  @Test func `A watch does not receive events from before its start`() throws {
    let reports = Counter()
    let older = try watch("/a", onChange: reports.increase)
    monitor.queue(.changed("file", .removed), of: 2)
    let younger = try watch("/a")
    #expect(reports.count == 1)
    #expect(try younger.takeChangedFiles() == [])
    #expect(try older.takeChangedFiles() == ["file"])
  }

  @Test func `A watch is notified at most once until its changes are taken, and not of those that its own call reads`()
    throws
  {
    let (reports, otherReports) = (Counter(), Counter())
    let watch = try watch("/a", onChange: reports.increase)
    let other = try self.watch("/b", onChange: otherReports.increase)
    monitor.queue(.changed("file", .removed), of: 2)
    monitor.queue(.changed("another", .closed), of: 3)
    #expect(try watch.takeChangedFiles() == ["file"])
    #expect(reports.count == 0)
    #expect(otherReports.count == 1)
    monitor.queue(.changed("third", .closed), of: 3)
    monitor.report()
    #expect(otherReports.count == 1)
    #expect(try other.takeChangedFiles() == ["another", "third"])
    monitor.queue(.anything, of: nil)
    monitor.report()
    #expect((reports.count, otherReports.count) == (1, 2))
    #expect(try watch.takeChangedFiles() == nil)
    #expect(try other.takeChangedFiles() == nil)
  }

  @Test func `If a watch's search for its folder fails, only that watch ends`() throws {
    let (faults, reports, otherReports) = (Faults(), Counter(), Counter())
    let watch = try watch("/a", fileSystem: faults.fileSystem, onChange: reports.increase)
    let other = try self.watch("/a", onChange: otherReports.increase)
    faults.rule.withLock { $0 = { _ in EIO } }
    monitor.queue(.folderLost, of: 2)
    monitor.queue(.changed("file", .removed), of: 2)
    monitor.report()
    #expect((reports.count, otherReports.count) == (1, 1))
    faults.rule.withLock { $0 = nil }
    watch.checkFolder()
    #expect(throws: SystemError(code: EIO, operation: "watch", path: "/a")) { try watch.takeChangedFiles() }
    #expect(try other.takeChangedFiles() == nil)
    monitor.queue(.changed("file", .removed), of: 2)
    #expect(try other.takeChangedFiles() == ["file"])
  }

  @Test func `A read that fails for one watch does not end another one`() throws {
    let (watch, other) = (try watch("/a"), try watch("/a"))
    monitor.queue(.changed("file", .removed), of: 2)
    monitor.withState { $0.readFailures = [EIO] }
    #expect(throws: SystemError(code: EIO, operation: "read", path: "/a")) { try watch.takeChangedFiles() }
    #expect(try other.takeChangedFiles() == ["file"])
    #expect(monitor.withState { $0.startCount } == 1)
  }

  @Test func `A read that fails for one watch and for the hub too ends all watches`() throws {
    let reports = Counter()
    let (watch, other) = (try watch("/a"), try watch("/b", onChange: reports.increase))
    monitor.withState { $0.readFailures = [EIO, EBADF] }
    #expect(throws: SystemError(code: EIO, operation: "read", path: "/a")) { try watch.takeChangedFiles() }
    #expect(reports.count == 1)
    #expect(throws: SystemError(code: EBADF, operation: "read", path: "/b")) { try other.takeChangedFiles() }
    #expect(monitor.withState { !$0.isStarted })
  }

  @Test func `A read that fails for the hub ends all watches, and the next watch restarts the monitor`() async throws {
    let reports = Counter()
    var watches = [try watch("/a", onChange: reports.increase), try watch("/b", onChange: reports.increase)]
    monitor.withState { $0.readFailures = [EIO] }
    monitor.report()
    #expect(reports.count == 2)
    #expect(monitor.withState { !$0.isStarted })
    let next = try watch("/b")
    #expect(monitor.withState { $0.startCount } == 2)
    for (watch, folder) in zip(watches, ["/a", "/b"]) {
      #expect(throws: SystemError(code: EIO, operation: "read", path: folder)) { try watch.takeChangedFiles() }
    }
    // The new watch has the descriptor of an old one. The folder must stay watched when the old one is released.
    watches = []
    await hub.completeCalls()
    #expect(monitor.watchedNumbers == [3])
    monitor.queue(.changed("file", .removed), of: 3)
    #expect(try next.takeChangedFiles() == ["file"])
  }

  /// The last reference to a watch, and the changes that were taken from the watch.
  private final class Holder: Sendable {
    let watch = Lock<FolderWatch?>(nil)
    let taken = Lock<[[String]?]>([])

    func release() -> FolderWatch? {
      watch.withLock { watch in
        defer { watch = nil }
        return watch
      }
    }
  }

  /// Starts a watch to which only the holder has a reference.
  private func hold(_ holder: Holder, _ folder: String, onChange: @escaping @Sendable () -> Void = {}) throws {
    let watch = try watch(folder, onChange: onChange)
    holder.watch.withLock { $0 = watch }
  }

  @Test func `A watch's onChange closure may call the hub, and release the last reference to the watch`() async throws {
    let holder = Holder()
    try hold(holder, "/a") {
      let watch = holder.release()
      watch?.checkFolder()
      let files = try? watch?.takeChangedFiles()
      holder.taken.withLock { $0.append(files) }
    }
    monitor.queue(.changed("file", .removed), of: 2)
    monitor.report()
    #expect(holder.taken.withLock { $0 } == [["file"]])
    await hub.completeCalls()
    #expect(monitor.withState { !$0.isStarted })
  }

  @Test func `The last reference to a watch may be released on the hub's queue`() async throws {
    let holder = Holder()
    try hold(holder, "/a")
    let fileSystem = FileSystem { _ in
      // The hub makes this call on its queue.
      _ = holder.release()
      return nil
    }
    let other = try watch("/b", fileSystem: fileSystem)
    await hub.completeCalls()
    #expect(monitor.watchedNumbers == [3])
    extendLifetime(other)
  }

  @Test func `Nothing stays watched after watches start, change and end on many threads at once`() async throws {
    DispatchQueue.concurrentPerform(iterations: 200) { number in
      guard let watch = try? watch(number.isMultiple(of: 3) ? "/missing" : "/a") else { return }
      monitor.queue(.changed("\(number)", .removed), of: 2)
      if number.isMultiple(of: 2) { monitor.report() } else { watch.checkFolder() }
      _ = try? watch.takeChangedFiles()
    }
    await hub.completeCalls()
    #expect(monitor.withState { !$0.isStarted && $0.watched.isEmpty })
  }
}
