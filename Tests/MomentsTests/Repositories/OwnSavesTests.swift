import Repository
import Testing

@testable import Moments

@Suite struct OwnSavesTests {
  private var saves = OwnSaves()
  private var guardian = VersionGuard()

  private mutating func arrives(_ revision: UInt64) -> Bool { saves.arrived(revision, at: guardian.begin()) }

  @Test mutating func `What arrives while nothing is saved is somebody else's`() {
    #expect(arrives(1) == true)
    #expect(arrives(2) == true)
  }

  @Test mutating func `A save of one's own may arrive before or after it returns`() {
    saves.begin()
    #expect(arrives(1) == false)
    #expect(saves.end(1) == nil)
    saves.begin()
    #expect(saves.end(2) == nil)
    #expect(arrives(2) == false)
    #expect(arrives(3) == true)
  }

  @Test mutating func `Of several that arrive during a save, those of others are told when it has returned`() {
    saves.begin()
    #expect(arrives(1) == false)
    let moment = guardian.begin()
    #expect(saves.arrived(2, at: moment) == false)
    #expect(arrives(3) == false)
    #expect(saves.end(3) == moment)
    saves.begin()
    let last = guardian.begin()
    #expect(arrives(4) == false)
    #expect(saves.arrived(5, at: last) == false)
    #expect(saves.end(4) == last)
  }

  @Test mutating func `What arrives during a save that fails is somebody else's`() {
    saves.begin()
    let moment = guardian.begin()
    #expect(saves.arrived(1, at: moment) == false)
    #expect(saves.end(nil) == moment)
    #expect(arrives(2) == true)
  }

  @Test mutating func `An earlier save of one's own may arrive during a later one`() {
    saves.begin()
    #expect(saves.end(1) == nil)
    saves.begin()
    #expect(saves.end(2) == nil)
    saves.begin()
    #expect(arrives(1) == false)
    #expect(arrives(2) == false)
    #expect(saves.end(3) == nil)
    #expect(arrives(3) == false)
  }

  @Test mutating func `A save that is found stored when the store is observed does not arrive again`() {
    saves.begin()
    #expect(saves.end(1) == nil)
    saves.begin()
    saves.skip(upTo: 2)
    #expect(saves.end(2) == nil)
    #expect(arrives(3) == true)
  }
}
