import Testing

@testable import Repository

@Suite struct RecordEchoesTests {
  private let id = MutationID(rawValue: "a")

  @Test func `The decision whether a change is external waits until all writes of its record have ended`() {
    var echoes = RecordEchoes()
    #expect(echoes.receive(id, revision: 1) == true)
    echoes.beginWriting(id)
    echoes.beginWriting(id)
    #expect(echoes.receive(id, revision: 2) == false)
    #expect(echoes.endWriting(id) == nil)
    #expect(echoes.receive(id, revision: 3) == false)
    #expect(echoes.endWriting(id) == 3)
    #expect(echoes.receive(id, revision: 4) == true)
    echoes.beginWriting(id)
    #expect(echoes.endWriting(id) == nil)
  }

  @Test func `All changes up to this repository's own removal are echoes, even if they are reported late`() {
    var echoes = RecordEchoes()
    echoes.recordRemoval(of: id, revision: 5)
    #expect(echoes.receive(id, revision: 3) == false)
    #expect(echoes.receive(id, revision: 5) == false)
    // The removal has been reported, so it's no longer remembered.
    #expect(echoes.receive(id, revision: 6) == true)
  }

  @Test func `A removal whose revision the store has already reported isn't remembered`() {
    var echoes = RecordEchoes()
    #expect(echoes.receive(MutationID(rawValue: "b"), revision: 5) == true)
    echoes.recordRemoval(of: id, revision: 5)
    // If the removal were remembered, this change would count as an echo, although its revision is newer.
    #expect(echoes.receive(id, revision: 6) == true)
  }
}
