import DataStore
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

@Suite struct PendingMutationListTests {
  private typealias List = PendingMutationList<TallyMutation>

  @Test func `A mutation that is removed and added again is applied once, and before those added later`() throws {
    var state = SyncState<Tally, TallyMutation>()
    state.open(.init(value: Tally(), tag: StoreTag(), revision: 1))
    let ids = [MutationID(), MutationID(), MutationID()]
    for (change, id) in ids.enumerated() { try state.add(id, TallyMutation(change: change)) }
    state.remove(ids[1])
    // Impossible on a value that includes change 3, which is added later.
    try state.add(ids[1], TallyMutation(change: 1, excluded: 3))
    try state.add(MutationID(), TallyMutation(change: 3))
    // All mutations are applied to this newer base.
    _ = state.receiveExternal(.init(value: Tally([4]), tag: StoreTag(), revision: 2), revision: 2)
    #expect(state.fold().isEmpty)
    #expect(state.visible?.counts == [0: 1, 1: 1, 2: 1, 3: 1, 4: 1])
  }

  @Test func `A mutation that is added twice is applied once`() throws {
    var state = SyncState<Tally, TallyMutation>()
    state.open(.init(value: Tally(), tag: StoreTag(), revision: 1))
    let id = MutationID()
    for _ in 1...2 { try state.add(id, TallyMutation(change: 1)) }
    #expect(state.visible?.counts == [1: 1])
  }

  @Test(arguments: UInt64(0)..<50)
  func `After any appends, removals and changes of phase, the list is in the order of the appends`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var versions = VersionBarriers()
    let confirmedAt = versions.now()
    let ids = (0..<6).map { _ in MutationID() }
    var list = List()
    var model: [(id: MutationID, isConfirmed: Bool)] = []
    for step in 0..<300 {
      let id = ids.randomElement(using: &generator)!
      let isConfirmed = Bool.random(using: &generator)
      let phase: List.Phase = isConfirmed ? .confirmed(at: confirmedAt) : .waiting
      let index = model.firstIndex { $0.id == id }
      switch Int.random(in: 0..<3, using: &generator) {
      case 0:
        list.append(.init(id: id, mutation: TallyMutation(change: step), phase: phase))
        if index == nil { model.append((id, isConfirmed)) }
      case 1:
        #expect(list.remove(id)?.id == (index == nil ? nil : id))
        if let index { model.remove(at: index) }
      default:
        list.setPhase(phase, of: id)
        if let index { model[index].isConfirmed = isConfirmed }
      }
      #expect(Array(list.all.map(\.id)) == model.map(\.id), "step \(step)")
      #expect(list.confirmed.map(\.id) == model.filter(\.isConfirmed).map(\.id), "step \(step)")
      #expect(list.confirmedCount == model.count { $0.isConfirmed }, "step \(step)")
      #expect(list.isEmpty == model.isEmpty)
    }
  }
}
