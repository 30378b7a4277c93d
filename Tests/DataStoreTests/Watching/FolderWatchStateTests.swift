import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The effects of a folder's events on one watch, and those of a check for a different folder at the watched path.
@Suite struct FolderWatchStateTests {
  private typealias Target = FolderWatchState.Target

  private static let folderTarget = target(1)

  private static func target(_ number: CInt, awaiting name: String? = nil) -> Target {
    Target(descriptor: WatchDescriptor(number: number), awaitedName: name)
  }

  private func makeState(_ target: Target = folderTarget, reportsWrites: Bool = false) -> FolderWatchState {
    FolderWatchState(ignoredPrefix: ".own-", reportsWrites: reportsWrites, target: target)
  }

  private func changedFiles(after events: FolderEvent..., reportsWrites: Bool = false) throws -> [String]? {
    var state = makeState(reportsWrites: reportsWrites)
    for event in events { state.record(event) }
    let hasChanges = state.hasChanges
    let files = try state.takeChangedFiles().get()
    #expect(hasChanges == (files != []))
    return files
  }

  @Test func `Writes and removals by the store itself are not reported`() throws {
    #expect(
      try changedFiles(
        after: .changed(".own-1", .created), .changed(".own-1", .written), .changed(".own-1", .closed),
        .changed(".own-1", .movedAway(rename: 7)), .changed("a", .movedHere(rename: 7)), reportsWrites: true) == [])
    #expect(
      try changedFiles(
        after: .changed("a", .movedAway(rename: 8)), .changed(".own-2", .movedHere(rename: 8)),
        .changed(".own-2", .removed))
        == [])
  }

  @Test func `An event between the two events of the store's own rename is reported, but not the rename`() throws {
    #expect(
      try changedFiles(
        after: .changed(".own-1", .movedAway(rename: 7)), .changed("b", .closed), .changed("a", .movedHere(rename: 7)))
        == ["b"])
    #expect(
      try changedFiles(
        after: .changed("a", .movedAway(rename: 8)), .changed("b", .removed), .changed(".own-2", .movedHere(rename: 8)))
        == ["b"])
  }

  @Test func `After both events of the store's own rename no file counts as changed, even if they arrive separately`()
    throws
  {
    var state = makeState()
    state.record(.changed(".own-1", .movedAway(rename: 7)))
    #expect(state.takeReport() == false)
    state.record(.changed("a", .movedHere(rename: 7)))
    #expect(state.takeReport() == false)
    state.record(.changed("a", .movedAway(rename: 8)))
    // Without the second event, the file may have left the folder.
    #expect(state.takeReport() == true)
    state.record(.changed(".own-2", .movedHere(rename: 8)))
    #expect(state.takeReport() == false)
    #expect(try state.takeChangedFiles().get() == [])
  }

  @Test func `A failed check reports nothing, and the next successful check reports that any file may have changed`()
    throws
  {
    var state = makeState()
    state.couldNotCheck()
    #expect(!state.hasChanges)
    state.record(.changed("a", .removed))
    #expect(try state.takeChangedFiles().get() == ["a"])
    state.checked(Self.folderTarget)
    #expect(try state.takeChangedFiles().get() == nil)
    state.checked(Self.folderTarget)
    #expect(!state.hasChanges)
  }

  @Test func `A write or a removal by another process is reported`() throws {
    #expect(
      try changedFiles(after: .changed(".other-1", .movedAway(rename: 7)), .changed("a", .movedHere(rename: 7)))
        == [".other-1", "a"])
    #expect(
      try changedFiles(after: .changed("a", .movedAway(rename: 7)), .changed(".other-1", .movedHere(rename: 7)))
        == ["a", ".other-1"])
    #expect(try changedFiles(after: .changed("a", .removed)) == ["a"])
    #expect(try changedFiles(after: .changed("a", .created), .changed("a", .written), .changed("a", .closed)) == ["a"])
  }

  @Test func `Creating a file is not reported, and writing to it is reported only on request`() throws {
    #expect(try changedFiles(after: .changed("a", .created), reportsWrites: true) == [])
    #expect(try changedFiles(after: .changed("a", .written)) == [])
    #expect(try changedFiles(after: .changed("a", .written), reportsWrites: true) == ["a"])
  }

  @Test func `Files that change several times are reported once each, in the order of their first changes`() throws {
    #expect(
      try changedFiles(
        after: .changed("b", .closed), .changed("a", .removed), .changed("b", .closed), .changed("a", .closed))
        == ["b", "a"])
  }

  @Test func `A file that is moved from or to another folder is reported`() throws {
    #expect(try changedFiles(after: .changed("a", .movedHere(rename: 7))) == ["a"])
    #expect(try changedFiles(after: .changed("a", .movedAway(rename: 7))) == ["a"])
    #expect(
      try changedFiles(after: .changed("a", .movedAway(rename: 7)), .changed("b", .movedHere(rename: 8))) == ["a", "b"])
    #expect(
      try changedFiles(after: .changed("a", .movedAway(rename: 7)), .changed("b", .movedAway(rename: 8))) == ["a", "b"])
    #expect(
      try changedFiles(after: .changed(".own-1", .movedAway(rename: 7)), .changed("b", .movedHere(rename: 8))) == ["b"])
  }

  @Test func `Changes cause one report until they are taken, and the next change causes another report`() throws {
    var state = makeState()
    #expect(state.takeReport() == false)
    state.record(.changed("a", .removed))
    #expect(state.takeReport() == true)
    state.record(.changed("b", .removed))
    #expect(state.takeReport() == false)
    #expect(try state.takeChangedFiles().get() == ["a", "b"])
    #expect(state.takeReport() == false)
    #expect(try state.takeChangedFiles().get() == [])
    state.record(.changed("a", .removed))
    #expect(state.takeReport() == true)
  }

  @Test(arguments: [folderTarget, target(1, awaiting: "folder")])
  private func `After an event without details any file may have changed`(target: Target) throws {
    var state = makeState(target)
    state.record(.anything)
    #expect(state.mustFindFolder)
    #expect(try state.takeChangedFiles().get() == nil)
    #expect(try state.takeChangedFiles().get() == [])
    state.found(target)
    #expect(!state.mustFindFolder)
    #expect(!state.hasChanges)
  }

  @Test func `A folder that disappears is searched for, and its loss and its return are reported`() throws {
    var state = makeState()
    state.record(.folderLost)
    #expect(state.mustFindFolder)
    #expect(try state.takeChangedFiles().get() == nil)
    state.found(Self.target(2, awaiting: "folder"))
    #expect(!state.mustFindFolder)
    #expect(try state.takeChangedFiles().get() == [])
    state.record(.changed("another", .created))
    #expect(!state.mustFindFolder)
    state.record(.changed("folder", .created))
    #expect(state.mustFindFolder)
    #expect(!state.hasChanges)
    state.found(Self.target(3))
    #expect(try state.takeChangedFiles().get() == nil)
  }

  @Test func `A watched parent folder's changes are ignored, except its loss and the appearance of the awaited name`()
    throws
  {
    let ignored: [FolderEvent.FileChange] = [.written, .closed, .removed, .movedAway(rename: 7)]
    var state = makeState(Self.target(1, awaiting: "folder"))
    for change in ignored { state.record(.changed("folder", change)) }
    #expect(!state.mustFindFolder)
    for event in [FolderEvent.changed("folder", .created), .changed("folder", .movedHere(rename: 7)), .folderLost] {
      state.record(event)
      #expect(state.mustFindFolder)
      state.found(Self.target(1, awaiting: "folder"))
    }
    #expect(!state.hasChanges)
  }

  @Test func `If a check finds a different folder or no folder at the path, any file may have changed`() throws {
    for found in [Self.target(2), Self.target(2, awaiting: "folder")] {
      var state = makeState()
      state.checked(Self.folderTarget)
      #expect(try state.takeChangedFiles().get() == [])
      state.checked(found)
      #expect(try state.takeChangedFiles().get() == nil)
      #expect(state.target == found)
      state.checked(found)
      #expect(try state.takeChangedFiles().get() == [])
    }
  }

  @Test func `A failure ends the watch, causes one report, and is returned whenever changed files are taken`() throws {
    var state = makeState()
    let error = SystemError(code: EIO, operation: "read", path: "folder")
    state.record(.folderLost)
    state.fail(with: error)
    #expect(state.target == nil)
    #expect(!state.mustFindFolder)
    #expect(state.takeReport() == true)
    #expect(state.takeReport() == false)
    state.record(.anything)
    state.found(Self.folderTarget)
    state.checked(Self.folderTarget)
    state.fail(with: SystemError(code: EACCES, operation: "open", path: "folder"))
    #expect(state.target == nil)
    for _ in 1...2 {
      let result = state.takeChangedFiles()
      #expect(throws: error) { try result.get() }
    }
    #expect(state.takeReport() == false)
  }
}
