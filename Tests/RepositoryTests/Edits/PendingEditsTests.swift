import MulticastTesting
import Repository
import Testing

@Suite struct PendingEditsTests {
  typealias Edits = PendingEdits<[String], Int>

  private func appending(_ text: String) -> Edits.Edit { { $0.append(text) } }

  @Test func `Edits are laid over the stored value in the order they were made`() {
    var edits = Edits()
    #expect(edits.value(over: ["stored"]) == ["stored"])
    edits.add(2, appending("b"))
    edits.add(1, appending("a"))
    #expect(edits.value(over: ["stored"]) == ["stored", "b", "a"])
    #expect(edits.value(over: ["newer"]) == ["newer", "b", "a"])
    #expect(edits.ids == [2, 1])
  }

  @Test func `A refused edit goes at once`() {
    var edits = Edits()
    edits.add(1, appending("a"))
    edits.add(2, appending("b"))
    #expect(edits.refuse(1) == true)
    #expect(edits.refuse(1) == false)
    #expect(edits.value(over: []) == ["b"])
  }

  @Test func `An edit of the same id gives way, and the new one is on top`() {
    var edits = Edits()
    edits.add(1, appending("a"))
    edits.add(2, appending("b"))
    edits.add(1, appending("c"))
    #expect(edits.value(over: []) == ["b", "c"])
  }

  @Test func `A confirmed edit goes with the arrival of the revision that contains it`() {
    var edits = Edits()
    edits.add(1, appending("a"))
    edits.add(2, appending("b"))
    edits.confirm(1, savedAs: 7)
    #expect(edits.ids == [1, 2])
    edits.arrived(6)
    #expect(edits.ids == [1, 2])
    edits.arrived(7)
    #expect(edits.ids == [2])
  }

  @Test func `The arrival may be told before the confirmation`() {
    var edits = Edits()
    edits.add(1, appending("a"))
    edits.arrived(7)
    #expect(edits.ids == [1])
    edits.confirm(1, savedAs: 7)
    #expect(edits.isEmpty)
  }

  @Test func `An edit whose reply was not saved goes with the first value that was requested later`() {
    var edits = Edits()
    var guardian = VersionGuard()
    edits.add(1, appending("a"))
    let overlapping = guardian.begin()
    edits.confirm(1, at: guardian.begin())
    #expect(edits.idsThatNeedAFetch == [1])
    let later = guardian.begin()
    edits.saved(3, requestedAt: overlapping)
    edits.arrived(3)
    #expect(edits.ids == [1])
    edits.saved(4, requestedAt: later)
    #expect(edits.idsThatNeedAFetch == [])
    #expect(edits.ids == [1])
    edits.arrived(4)
    #expect(edits.isEmpty)
  }

  @Test func `An edit is saved once a value with it is stored, whether or not that has arrived`() {
    var edits = Edits()
    var guardian = VersionGuard()
    edits.add(1, appending("a"))
    edits.add(2, appending("b"))
    #expect(edits.isSaved(1) == false)
    edits.confirm(1, at: guardian.begin())
    #expect(edits.isSaved(1) == false)
    edits.saved(3, requestedAt: guardian.begin())
    #expect(edits.isSaved(1) == true)
    edits.confirm(2, savedAs: 4)
    #expect(edits.isSaved(2) == true)
    edits.arrived(4)
    #expect(edits.isEmpty)
    #expect(edits.isSaved(1) == true)
  }

  @Test func `What is told of an edit that is not there changes nothing`() {
    var edits = Edits()
    var guardian = VersionGuard()
    edits.confirm(1, savedAs: 1)
    edits.confirm(1, at: guardian.begin())
    edits.saved(1, requestedAt: guardian.begin())
    #expect(edits.refuse(1) == false)
    edits.add(2, appending("b"))
    edits.confirm(1, savedAs: 1)
    edits.arrived(9)
    #expect(edits.ids == [2])
  }

  @Test(arguments: 0..<50 as Range<UInt64>)
  func `What is seen is the stored value with the remaining edits in order`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var edits = Edits()
    // What remains, by the rules as they are told: id, text, the revision that takes it away.
    var model: [(id: Int, text: String, revision: UInt64?)] = []
    var arrived: UInt64 = 0
    for step in 0..<200 {
      let id = Int.random(in: 0..<8, using: &generator)
      switch Int.random(in: 0..<4, using: &generator) {
      case 0:
        edits.add(id, appending("\(step)"))
        model.removeAll { $0.id == id }
        model.append((id, "\(step)", nil))
      case 1:
        #expect(edits.refuse(id) == model.contains { $0.id == id })
        model.removeAll { $0.id == id }
      case 2:
        let revision = arrived + UInt64.random(in: 0..<4, using: &generator)
        edits.confirm(id, savedAs: revision)
        for index in model.indices where model[index].id == id { model[index].revision = revision }
      default:
        arrived += UInt64.random(in: 0..<3, using: &generator)
        edits.arrived(arrived)
      }
      model.removeAll { $0.revision.map { $0 <= arrived } ?? false }
      #expect(edits.ids == model.map(\.id))
      #expect(edits.value(over: ["\(arrived)"]) == ["\(arrived)"] + model.map(\.text))
    }
  }
}
