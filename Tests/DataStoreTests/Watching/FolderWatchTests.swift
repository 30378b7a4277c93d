import Foundation
import Multicast
import TestSupport
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

#if !canImport(Darwin)
  /// Watches that share the inotify instance of the process.
  @Suite(.timeLimit(.minutes(15))) struct FolderWatchTests {
    private let temporary = TemporaryFolder()

    private static func path(of url: URL) -> String {
      let path = url.path(percentEncoded: false)
      return path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    /// Creates a folder.
    private func makeFolder(_ name: String = "folder") throws -> URL {
      let url = temporary.url.appending(path: name, directoryHint: .isDirectory)
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
      return url
    }

    /// Moves a symbolic link into a folder.
    ///
    /// A regular file would have to be written, and might be closed late: a process that starts meanwhile keeps it open
    /// until that process executes its program.
    private func putLink(named name: String, in folder: URL) throws {
      let link = temporary.url.appending(path: UUID().uuidString)
      try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder)
      try FileManager.default.moveItem(at: link, to: folder.appending(path: name))
    }

    private func startWatch(
      _ folder: URL, ignoredPrefix: String = ".own-", reportsWrites: Bool = false,
      fileSystem: FileSystem = FileSystem(), hub: FolderHub = .shared
    ) throws -> FolderWatch {
      try FolderWatch(
        folder: Self.path(of: folder), ignoredPrefix: ignoredPrefix, reportsWrites: reportsWrites,
        fileSystem: fileSystem, hub: hub, onChange: {})
    }

    @Test func `Watches of one folder take the same changes, except a rename from a name that one of them ignores`()
      throws
    {
      let folder = try makeFolder()
      let (first, second) = (try startWatch(folder, ignoredPrefix: ".1-"), try startWatch(folder, ignoredPrefix: ".2-"))
      let writeReportingWatch = try startWatch(folder, reportsWrites: true)
      try FileManager.default.createSymbolicLink(
        at: folder.appending(path: ".1-new"), withDestinationURL: temporary.url)
      try FileManager.default.moveItem(at: folder.appending(path: ".1-new"), to: folder.appending(path: "a"))
      // The first watch ignores the old name, so it doesn't report the new one either.
      #expect(try first.takeChangedFiles() == [])
      for watch in [second, writeReportingWatch] { #expect(try watch.takeChangedFiles() == [".1-new", "a"]) }
      try FileManager.default.removeItem(at: folder.appending(path: "a"))
      for watch in [first, second, writeReportingWatch] { #expect(try watch.takeChangedFiles() == ["a"]) }
    }

    @Test func `Each write is reported only to watches that asked for writes`() throws {
      let folder = try makeFolder()
      let descriptor = open(Self.path(of: folder.appending(path: "a")), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      let (watch, writeReportingWatch) = (try startWatch(folder), try startWatch(folder, reportsWrites: true))
      for _ in 1...2 {
        try file.write(contentsOf: Data("new".utf8))
        #expect(try watch.takeChangedFiles() == [])
        #expect(try writeReportingWatch.takeChangedFiles() == ["a"])
      }
    }

    @Test func `Releasing a watch does not end another watch of the same folder`() async throws {
      let folder = try makeFolder()
      let hub = FolderHub()
      // The folder `inner` doesn't exist yet, so this watch waits for its appearance.
      let awaitingWatch = try startWatch(folder.appending(path: "inner"), hub: hub)
      let remainingWatch = try startWatch(folder, hub: hub)
      for name in ["a", "b", "c"] {
        // This watch is released immediately.
        do { _ = try startWatch(folder, reportsWrites: true, hub: hub) }
        await hub.waitForEarlierCalls()
        try putLink(named: name, in: folder)
        #expect(try remainingWatch.takeChangedFiles() == [name])
        #expect(try awaitingWatch.takeChangedFiles() == [])
      }
      _ = try makeFolder("folder/inner")
      // `inner` may have appeared with files in it, so the result is `nil`: any file may have changed.
      #expect(try awaitingWatch.takeChangedFiles() == nil)
      try putLink(named: "d", in: folder.appending(path: "inner"))
      #expect(try awaitingWatch.takeChangedFiles() == ["d"])
      // The creation of `inner` changes no file of `folder`.
      #expect(try remainingWatch.takeChangedFiles() == [])
    }

    @Test func `An injected read error of one watch does not end another watch`() throws {
      let folder = try makeFolder()
      let broken = try startWatch(folder, fileSystem: FileSystem { $0.operation == "inotify_read" ? EIO : nil })
      let intact = try startWatch(folder)
      try putLink(named: "a", in: folder)
      for _ in 1...2 {
        #expect(throws: SystemError(code: EIO, operation: "inotify_read", path: Self.path(of: folder))) {
          try broken.takeChangedFiles()
        }
      }
      #expect(try intact.takeChangedFiles() == ["a"])
    }

    @Test(arguments: ["inotify_init", "inotify_add_watch"])
    func `An error injected into a watch's start is thrown even if another watch exists`(operation: String) throws {
      let folder = try makeFolder()
      let intact = try startWatch(folder)
      #expect(throws: SystemError(code: EMFILE, operation: operation, path: Self.path(of: folder))) {
        try startWatch(folder, fileSystem: FileSystem { $0.operation == operation ? EMFILE : nil })
      }
      try putLink(named: "a", in: folder)
      #expect(try intact.takeChangedFiles() == ["a"])
    }

    /// The number of inotify instances of this process.
    private static var instanceCount: Int {
      let descriptors = "/proc/self/fd"
      let names = (try? FileManager.default.contentsOfDirectory(atPath: descriptors)) ?? []
      let targets = names.map { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(descriptors)/\($0)") }
      return targets.count { $0?.hasSuffix("anon_inode:inotify") == true }
    }

    /// Waits until this process has no inotify instance, and exits with a failure if it still has one after a minute.
    private static func waitUntilInstanceIsClosed() async throws {
      let deadline = ContinuousClock.now + .seconds(60)
      // The system doesn't report when a descriptor is closed, so this loop checks repeatedly.
      while instanceCount > 0 {
        if ContinuousClock.now > deadline { exit(3) }
        await Task.yield()
      }
    }

    @Test func `Fifty watches use one inotify instance, and none after they are released`() async {
      // The test runs in its own process, where no other test has watches.
      await #expect(processExitsWith: .success) {
        let test = FolderWatchTests()
        #expect(Self.instanceCount == 0)
        for round in 1...2 {
          var watches: [FolderWatch] = []
          for number in 0..<50 { watches.append(try test.startWatch(test.makeFolder("\(number)"))) }
          #expect(Self.instanceCount == 1)
          for number in 0..<50 {
            try test.putLink(named: "\(round)", in: test.temporary.url.appending(path: "\(number)"))
          }
          for watch in watches { #expect(try watch.takeChangedFiles() == ["\(round)"]) }
          watches.removeFirst(49)
          #expect(Self.instanceCount == 1)
          watches = []
          try await Self.waitUntilInstanceIsClosed()
        }
      }
    }

    @Test func `Fifty observed stores use one inotify instance, and none after they are released`() async {
      await #expect(processExitsWith: .success) {
        let temporary = TemporaryFolder()
        let key = StoreKey<String>("text", id: "0")
        let folders = (0..<50).map { temporary.url.appending(path: "\($0)", directoryHint: .isDirectory) }
        var stores = folders.map { FileStore(folder: $0) }
        var subscriptions: [MulticastSubscription<StoreChange<String>, Never>] = []
        for store in stores { subscriptions.append(try await store.changes(of: key).subscribe()) }
        #expect(Self.instanceCount == 1)
        for (number, folder) in folders.enumerated() {
          try await FileStore(folder: folder).save("\(number)", for: key)
        }
        for (number, subscription) in subscriptions.enumerated() {
          var changes = subscription.makeAsyncIterator()
          #expect(await changes.next()?.stored?.value == "\(number)")
        }
        #expect(Self.instanceCount == 1)
        (stores, subscriptions) = ([], [])
        try await Self.waitUntilInstanceIsClosed()
        extendLifetime(temporary)
      }
    }
  }
#endif
