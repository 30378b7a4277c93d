#if !canImport(Darwin)
  import Testing

  @testable import DataStore

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// What the events of inotify are taken for.
  @Suite struct FolderWatchStateTests {
    private typealias Event = FolderWatchState.Event
    private typealias Target = FolderWatchState.Target

    private func state(_ target: Target = Target(number: 1, awaitedName: nil)) -> FolderWatchState {
      FolderWatchState(ownPrefix: ".own-", target: target)
    }

    private func event(_ mask: CInt, _ name: String = "", cookie: UInt32 = 0, target: CInt = 1) -> Event {
      Event(target: target, mask: UInt32(mask), cookie: cookie, name: name)
    }

    private func files(_ events: Event...) throws -> [String]? {
      var state = state()
      for event in events { state.take(event) }
      state.endBatch()
      return try state.takeChangedFiles().get()
    }

    @Test func `A write of the store's own is not told, and neither is a removal`() throws {
      let write = [
        event(IN_CLOSE_WRITE, ".own-1"), event(IN_MOVED_FROM, ".own-1", cookie: 7), event(IN_MOVED_TO, "a", cookie: 7),
      ]
      #expect(try files(write[0], write[1], write[2]) == [])
      let removal = [
        event(IN_MOVED_FROM, "a", cookie: 8), event(IN_MOVED_TO, ".own-2", cookie: 8), event(IN_DELETE, ".own-2"),
      ]
      #expect(try files(removal[0], removal[1], removal[2]) == [])
    }

    @Test func `A check that fails tells nothing and ends nothing, and the next that does not tells of anything`()
      throws
    {
      var state = state()
      state.couldNotCheck()
      #expect(!state.hasSomething)
      state.take(event(IN_DELETE, "a"))
      #expect(try state.takeChangedFiles().get() == ["a"])
      state.checked(Target(number: 1, awaitedName: nil))
      #expect(try state.takeChangedFiles().get() == nil)
      state.checked(Target(number: 1, awaitedName: nil))
      #expect(!state.hasSomething)
    }

    @Test func `A write or a removal of another is told`() throws {
      #expect(
        try files(event(IN_MOVED_FROM, ".other-1", cookie: 7), event(IN_MOVED_TO, "a", cookie: 7)) == [".other-1", "a"])
      #expect(
        try files(event(IN_MOVED_FROM, "a", cookie: 7), event(IN_MOVED_TO, ".other-1", cookie: 7)) == ["a", ".other-1"])
      #expect(try files(event(IN_DELETE, "a")) == ["a"])
      #expect(try files(event(IN_CLOSE_WRITE, "a")) == ["a"])
    }

    @Test func `A file that comes from another folder, or goes to one, is told`() throws {
      #expect(try files(event(IN_MOVED_TO, "a", cookie: 7)) == ["a"])
      #expect(try files(event(IN_MOVED_FROM, "a", cookie: 7)) == ["a"])
      #expect(try files(event(IN_MOVED_FROM, "a", cookie: 7), event(IN_MOVED_TO, "b", cookie: 8)) == ["a", "b"])
      #expect(try files(event(IN_MOVED_FROM, ".own-1", cookie: 7), event(IN_MOVED_TO, "b", cookie: 8)) == ["b"])
    }

    @Test func `What is taken is not told again`() throws {
      var state = state()
      state.take(event(IN_DELETE, "a"))
      #expect(state.hasSomething)
      #expect(try state.takeChangedFiles().get() == ["a"])
      #expect(!state.hasSomething)
      #expect(try state.takeChangedFiles().get() == [])
    }

    @Test func `Lost events may have been of any file`() throws {
      var state = state()
      state.take(event(IN_Q_OVERFLOW, target: -1))
      #expect(state.mustFindFolder)
      #expect(try state.takeChangedFiles().get() == nil)
      #expect(try state.takeChangedFiles().get() == [])
    }

    @Test(arguments: [IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_IGNORED])
    func `A folder that goes is looked for, and told when it is found`(mask: CInt) throws {
      var state = state()
      state.take(event(mask))
      #expect(state.mustFindFolder)
      #expect(try state.takeChangedFiles().get() == nil)
      state.found(Target(number: 2, awaitedName: "folder"))
      #expect(!state.mustFindFolder)
      #expect(try state.takeChangedFiles().get() == [])
      state.take(event(IN_CREATE, "another", target: 2))
      #expect(!state.mustFindFolder)
      state.take(event(IN_IGNORED, target: 1))
      #expect(!state.mustFindFolder)
      state.take(event(IN_CREATE, "folder", target: 2))
      #expect(state.mustFindFolder)
      state.found(Target(number: 3, awaitedName: nil))
      #expect(try state.takeChangedFiles().get() == nil)
    }

    @Test func `Another folder that a look finds in the place is told, and so is that there is none`() throws {
      for found in [Target(number: 2, awaitedName: nil), Target(number: 2, awaitedName: "folder")] {
        var state = state()
        state.checked(Target(number: 1, awaitedName: nil))
        #expect(try state.takeChangedFiles().get() == [])
        state.checked(found)
        state.take(event(IN_DELETE, "a", target: 1))
        #expect(try state.takeChangedFiles().get() == nil)
        #expect(state.target == found)
        state.checked(found)
        #expect(try state.takeChangedFiles().get() == [])
      }
    }

    @Test func `A failure ends the watch`() throws {
      var state = state()
      let error = SystemError(code: EIO, operation: "read", path: "folder")
      state.failure = error
      #expect(state.hasSomething)
      #expect(throws: error) { try state.takeChangedFiles().get() }
    }
  }
#endif
