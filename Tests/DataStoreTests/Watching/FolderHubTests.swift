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
  ///
  /// It needs no body, because the hub runs one call at a time, in order.
  func waitForEarlierCalls() {}
}

/// Watches that share a hub, with a simulated operating system.
@Suite(.timeLimit(.minutes(15))) struct FolderHubTests {
  private let monitor: SimulatedMonitor
  private let hub: FolderHub

  init() {
    monitor = SimulatedMonitor(folderNumbers: ["/": 1, "/a": 2, "/b": 3])
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

  private func startWatch(
    _ folder: String, reportsWrites: Bool = false, fileSystem: FileSystem = FileSystem(),
    onChange: @escaping @Sendable () -> Void = {}
  ) throws -> FolderWatch {
    try FolderWatch(
      folder: folder, ignoredPrefix: ".own-", reportsWrites: reportsWrites, fileSystem: fileSystem, hub: hub,
      onChange: onChange)
  }

  @Test func `The monitor starts with the first watch, and stops after the last watch has ended`() async throws {
    var watches = [try startWatch("/a"), try startWatch("/a"), try startWatch("/b")]
    #expect(monitor.withState { $0.startCount } == 1)
    #expect(monitor.watchedFolderNumbers == [2, 3])
    watches.removeFirst()
    await hub.waitForEarlierCalls()
    #expect(monitor.watchedFolderNumbers == [2, 3])
    watches.removeFirst()
    await hub.waitForEarlierCalls()
    #expect(monitor.watchedFolderNumbers == [3])
    #expect(monitor.withState { $0.isStarted })
    watches = []
    await hub.waitForEarlierCalls()
    #expect(monitor.withState { !$0.isStarted })
    watches = [try startWatch("/a")]
    #expect(monitor.withState { $0.startCount } == 2)
    #expect(monitor.watchedFolderNumbers == [2])
    extendLifetime(watches)
  }

  @Test func `If a watch can't start, its initializer throws, and nothing stays watched`() throws {
    let fileSystem = FileSystem { $0.operation == "watch" && $0.path == "/" ? EACCES : nil }
    #expect(throws: SystemError(code: EACCES, operation: "watch", path: "/")) {
      try startWatch("/missing/folder", fileSystem: fileSystem)
    }
    #expect(monitor.withState { !$0.isStarted })
  }

  @Test(arguments: ["/a", "/missing"])
  func `A watch that cannot start does not affect other watches`(folder: String) throws {
    let other = try startWatch(folder)
    let numbersBefore = monitor.watchedFolderNumbers
    let errorCodes = Lock<[CInt?]>([nil, nil, EACCES])
    let fileSystem = FileSystem { _ in errorCodes.withLock { $0.removeFirst() } }
    // The first call finds no folder at the path, and the second call watches the parent. The third call tries the
    // path again, and fails.
    #expect(throws: SystemError(code: EACCES, operation: "watch", path: "/another")) {
      try startWatch("/another", fileSystem: fileSystem)
    }
    #expect(monitor.watchedFolderNumbers == numbersBefore)
    extendLifetime(other)
  }

  @Test func `The nearest existing ancestor is watched until the folder exists`() throws {
    let reports = Counter()
    let watch = try startWatch("/outer/inner", onChange: reports.increase)
    #expect(monitor.watchedFolderNumbers == [1])
    monitor.queue(.changed("other", .created), ofFolder: 1)
    monitor.notifyHub()
    monitor.withState { $0.folders["/outer"] = WatchDescriptor(number: 4) }
    monitor.queue(.changed("outer", .created), ofFolder: 1)
    monitor.notifyHub()
    #expect(monitor.watchedFolderNumbers == [4])
    #expect(reports.count == 0)
    monitor.withState { $0.folders["/outer/inner"] = WatchDescriptor(number: 5) }
    monitor.queue(.changed("inner", .movedHere(rename: 1)), ofFolder: 4)
    monitor.notifyHub()
    #expect(monitor.watchedFolderNumbers == [5])
    #expect(reports.count == 1)
    #expect(try watch.takeChangedFiles() == nil)
    monitor.withState { $0.folders["/outer/inner"] = nil }
    monitor.queue(.folderLost, ofFolder: 5)
    #expect(try watch.takeChangedFiles() == nil)
    #expect(monitor.watchedFolderNumbers == [4])
  }

  @Test func `A parent folder that another watch uses stays watched`() throws {
    let (parentWatch, watch) = (try startWatch("/"), try startWatch("/missing"))
    #expect(monitor.watchedFolderNumbers == [1])
    #expect(monitor.withState { $0.interests.values.first } == [.files(reportsWrites: false), .appearance])
    monitor.withState { $0.folders["/missing"] = WatchDescriptor(number: 4) }
    watch.checkFolder()
    #expect(monitor.watchedFolderNumbers == [1, 4])
    #expect(try watch.takeChangedFiles() == nil)
    monitor.queue(.changed("file", .removed), ofFolder: 1)
    #expect(try watch.takeChangedFiles() == [])
    #expect(try parentWatch.takeChangedFiles() == ["file"])
  }

  @Test func `A watch does not receive events from before its start`() throws {
    let reports = Counter()
    let older = try startWatch("/a", onChange: reports.increase)
    monitor.queue(.changed("file", .removed), ofFolder: 2)
    let newer = try startWatch("/a")
    #expect(reports.count == 1)
    #expect(try newer.takeChangedFiles() == [])
    #expect(try older.takeChangedFiles() == ["file"])
  }

  @Test func `onChange is called at most once until changes are taken, and not for changes found while taking them`()
    throws
  {
    let (reports, otherReports) = (Counter(), Counter())
    let watch = try startWatch("/a", onChange: reports.increase)
    let other = try startWatch("/b", onChange: otherReports.increase)
    monitor.queue(.changed("file", .removed), ofFolder: 2)
    monitor.queue(.changed("another", .closed), ofFolder: 3)
    // Taking the changes of one watch also finds the change of the other watch, whose `onChange` is then called.
    #expect(try watch.takeChangedFiles() == ["file"])
    #expect(reports.count == 0)
    #expect(otherReports.count == 1)
    monitor.queue(.changed("third", .closed), ofFolder: 3)
    monitor.notifyHub()
    #expect(otherReports.count == 1)
    #expect(try other.takeChangedFiles() == ["another", "third"])
    monitor.queue(.anything, ofFolder: nil)
    monitor.notifyHub()
    #expect((reports.count, otherReports.count) == (1, 2))
    #expect(try watch.takeChangedFiles() == nil)
    #expect(try other.takeChangedFiles() == nil)
  }

  @Test func `If a watch's search for its folder fails, only that watch ends`() throws {
    let (faults, reports, otherReports) = (Faults(), Counter(), Counter())
    let watch = try startWatch("/a", fileSystem: faults.fileSystem, onChange: reports.increase)
    let other = try startWatch("/a", onChange: otherReports.increase)
    faults.rule.withLock { $0 = { _ in EIO } }
    monitor.queue(.folderLost, ofFolder: 2)
    monitor.queue(.changed("file", .removed), ofFolder: 2)
    monitor.notifyHub()
    #expect((reports.count, otherReports.count) == (1, 1))
    faults.rule.withLock { $0 = nil }
    watch.checkFolder()
    #expect(throws: SystemError(code: EIO, operation: "watch", path: "/a")) { try watch.takeChangedFiles() }
    #expect(try other.takeChangedFiles() == nil)
    monitor.queue(.changed("file", .removed), ofFolder: 2)
    #expect(try other.takeChangedFiles() == ["file"])
  }

  @Test func `A read that fails for one watch does not end another one`() throws {
    let (watch, other) = (try startWatch("/a"), try startWatch("/a"))
    monitor.queue(.changed("file", .removed), ofFolder: 2)
    monitor.withState { $0.readErrorCodes = [EIO] }
    #expect(throws: SystemError(code: EIO, operation: "read", path: "/a")) { try watch.takeChangedFiles() }
    #expect(try other.takeChangedFiles() == ["file"])
    #expect(monitor.withState { $0.startCount } == 1)
  }

  @Test func `A read that fails for one watch and for the hub too ends all watches`() throws {
    let reports = Counter()
    let (watch, other) = (try startWatch("/a"), try startWatch("/b", onChange: reports.increase))
    // After the read for the watch has failed, the hub reads for all watches. That fails with the second code.
    monitor.withState { $0.readErrorCodes = [EIO, EBADF] }
    #expect(throws: SystemError(code: EIO, operation: "read", path: "/a")) { try watch.takeChangedFiles() }
    #expect(reports.count == 1)
    #expect(throws: SystemError(code: EBADF, operation: "read", path: "/b")) { try other.takeChangedFiles() }
    #expect(monitor.withState { !$0.isStarted })
  }

  @Test func `A read that fails for the hub ends all watches, and the next watch restarts the monitor`() async throws {
    let reports = Counter()
    var watches = [try startWatch("/a", onChange: reports.increase), try startWatch("/b", onChange: reports.increase)]
    monitor.withState { $0.readErrorCodes = [EIO] }
    monitor.notifyHub()
    #expect(reports.count == 2)
    #expect(monitor.withState { !$0.isStarted })
    let next = try startWatch("/b")
    #expect(monitor.withState { $0.startCount } == 2)
    for (watch, folder) in zip(watches, ["/a", "/b"]) {
      #expect(throws: SystemError(code: EIO, operation: "read", path: folder)) { try watch.takeChangedFiles() }
    }
    // The new watch has the same descriptor as an old watch. The folder must stay watched when the old watches are
    // released.
    watches = []
    await hub.waitForEarlierCalls()
    #expect(monitor.watchedFolderNumbers == [3])
    monitor.queue(.changed("file", .removed), ofFolder: 3)
    #expect(try next.takeChangedFiles() == ["file"])
  }

  /// Holds the last reference to a watch, and the changes that were taken from the watch.
  private final class Holder: Sendable {
    let watch = Lock<FolderWatch?>(nil)
    let takenChanges = Lock<[[String]?]>([])

    /// Returns the reference, and no longer holds it.
    func takeWatch() -> FolderWatch? {
      watch.withLock { watch in
        defer { watch = nil }
        return watch
      }
    }
  }

  /// Starts a watch to which only the holder has a reference.
  private func startWatch(
    _ folder: String, heldBy holder: Holder, onChange: @escaping @Sendable () -> Void = {}
  ) throws {
    let watch = try startWatch(folder, onChange: onChange)
    holder.watch.withLock { $0 = watch }
  }

  @Test func `A watch's onChange closure may call the hub, and release the last reference to the watch`() async throws {
    let holder = Holder()
    try startWatch("/a", heldBy: holder) {
      let watch = holder.takeWatch()
      watch?.checkFolder()
      let files = try? watch?.takeChangedFiles()
      holder.takenChanges.withLock { $0.append(files) }
    }
    monitor.queue(.changed("file", .removed), ofFolder: 2)
    monitor.notifyHub()
    #expect(holder.takenChanges.withLock { $0 } == [["file"]])
    await hub.waitForEarlierCalls()
    #expect(monitor.withState { !$0.isStarted })
  }

  @Test func `The last reference to a watch may be released on the hub's queue`() async throws {
    let holder = Holder()
    try startWatch("/a", heldBy: holder)
    let fileSystem = FileSystem { _ in
      // The hub calls this closure on its queue, where discarding the reference releases the watch.
      _ = holder.takeWatch()
      return nil
    }
    let other = try startWatch("/b", fileSystem: fileSystem)
    await hub.waitForEarlierCalls()
    #expect(monitor.watchedFolderNumbers == [3])
    extendLifetime(other)
  }

  @Test func `Nothing stays watched after many threads have started, used and ended watches at once`() async throws {
    DispatchQueue.concurrentPerform(iterations: 200) { number in
      guard let watch = try? startWatch(number.isMultiple(of: 3) ? "/missing" : "/a") else { return }
      monitor.queue(.changed("\(number)", .removed), ofFolder: 2)
      if number.isMultiple(of: 2) { monitor.notifyHub() } else { watch.checkFolder() }
      _ = try? watch.takeChangedFiles()
    }
    await hub.waitForEarlierCalls()
    #expect(monitor.withState { !$0.isStarted && $0.interests.isEmpty })
  }
}
