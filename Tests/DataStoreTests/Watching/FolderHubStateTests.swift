import MulticastTesting
import TestRounds
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The distribution of events to watches, and the use of descriptors.
@Suite struct FolderHubStateTests {
  private typealias Target = FolderWatchState.Target

  private static let descriptors = (1...4).map { WatchDescriptor(number: $0) }
  private static let error = SystemError(code: EIO, operation: "read", path: "folder")

  private func makeWatch(
    descriptor index: Int, awaiting name: String? = nil, ignoredPrefix: String = ".own-"
  ) -> FolderWatchState {
    FolderWatchState(
      ignoredPrefix: ignoredPrefix, target: Target(descriptor: Self.descriptors[index], awaitedName: name))
  }

  private func makeEvent(descriptor index: Int?, _ event: FolderEvent) -> FolderHubState.Event {
    FolderHubState.Event(descriptor: index.map { Self.descriptors[$0] }, folderEvent: event)
  }

  @Test func `All watches of a descriptor receive its events, and each reports only those that concern it`() throws {
    var state = FolderHubState()
    let first = state.add(makeWatch(descriptor: 0))
    let ignoringA = state.add(makeWatch(descriptor: 0, ignoredPrefix: "a"))
    let awaitingFolder = state.add(makeWatch(descriptor: 0, awaiting: "folder"))
    let onOtherDescriptor = state.add(makeWatch(descriptor: 1))
    state.record(makeEvent(descriptor: 0, .changed("a", .removed)))
    // Only the watch that awaits the folder reacts, because a created file isn't reported before it is closed.
    state.record(makeEvent(descriptor: 0, .changed("folder", .created)))
    // No watch has this descriptor.
    state.record(makeEvent(descriptor: 2, .anything))
    #expect(state.watchesThatMustFindFolder == [awaitingFolder])
    #expect(state.takeReports() == [first])
    #expect(state.takeReports() == [])
    #expect(try state.takeChangedFiles(of: first).get() == ["a"])
    for id in [ignoringA, awaitingFolder, onOtherDescriptor] { #expect(try state.takeChangedFiles(of: id).get() == []) }
  }

  @Test func `An event without a descriptor concerns every watch`() throws {
    var state = FolderHubState()
    let ids = (0..<3).map { state.add(makeWatch(descriptor: $0)) }
    state.record(makeEvent(descriptor: nil, .anything))
    #expect(state.watchesThatMustFindFolder == ids)
    #expect(state.takeReports() == ids)
    for id in ids { #expect(try state.takeChangedFiles(of: id).get() == nil) }
  }

  @Test func `A descriptor is unused when the last watch has left it, failed, or been removed`() {
    var state = FolderHubState()
    #expect(state.isIdle)
    let ids = (0..<3).map { _ in state.add(makeWatch(descriptor: 0)) }
    // The methods `found`, `fail`, `remove` and `checked` return the descriptor that became unused, if any.
    #expect(state.found(Target(descriptor: Self.descriptors[1], awaitedName: nil), by: ids[0]) == nil)
    #expect(state.fail(ids[1], with: Self.error) == nil)
    #expect(state.isUsed(Self.descriptors[0]))
    #expect(state.remove(ids[2]) == Self.descriptors[0])
    #expect(!state.isUsed(Self.descriptors[0]))
    #expect(state.checked(Target(descriptor: Self.descriptors[0], awaitedName: nil), by: ids[0]) == Self.descriptors[1])
    #expect(!state.isIdle)
    #expect(state.fail(ids[0], with: Self.error) == Self.descriptors[0])
    #expect(state.isIdle)
    for id in ids { #expect(state.remove(id) == nil) }
  }

  @Test func `A removed watch receives nothing, and its id isn't used again`() throws {
    var state = FolderHubState()
    let removed = state.add(makeWatch(descriptor: 0))
    state.record(makeEvent(descriptor: 0, .changed("a", .removed)))
    #expect(state.remove(removed) == Self.descriptors[0])
    let id = state.add(makeWatch(descriptor: 0))
    #expect(id != removed)
    state.record(makeEvent(descriptor: 0, .anything))
    #expect(state.takeReports() == [id])
    #expect(try state.takeChangedFiles(of: removed).get() == [])
    #expect(state.target(of: removed) == nil)
    #expect(state.fail(removed, with: Self.error) == nil)
    #expect(state.takeReports() == [])
  }

  // MARK: - Model

  /// A simple model, which searches all watches because it doesn't keep them by descriptor.
  ///
  /// Each event is recorded for each watch of its descriptor, and the use of a descriptor is computed from all watches.
  private struct Model {
    var watches: [(id: FolderHubState.WatchID, state: FolderWatchState)] = []

    func isUsed(_ descriptor: WatchDescriptor) -> Bool {
      watches.contains { $0.state.target?.descriptor == descriptor }
    }

    /// Changes or removes a watch.
    ///
    /// - Returns: The descriptor that the watch had, if no watch uses it after the change.
    mutating func change(
      at index: Int, _ change: (inout [(id: FolderHubState.WatchID, state: FolderWatchState)]) -> Void
    ) -> WatchDescriptor? {
      let old = watches[index].state.target?.descriptor
      change(&watches)
      return old.flatMap { isUsed($0) ? nil : $0 }
    }
  }

  @Test(arguments: 0..<UInt64(Rounds.count(12, full: 50)))
  func `Many watches that share descriptors behave as each would alone`(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    var (state, model) = (FolderHubState(), Model())
    let names = ["a", "b", ".own-1", ".own-2", "folder"]

    func randomTarget() -> Target {
      Target(
        descriptor: Self.descriptors.randomElement(using: &generator)!,
        awaitedName: Bool.random(using: &generator) ? nil : "folder")
    }
    func randomEvent() -> FolderEvent {
      let rename = UInt32.random(in: 0..<3, using: &generator)
      let changes: [FolderEvent.FileChange] = [
        .created, .written, .closed, .removed, .movedAway(rename: rename), .movedHere(rename: rename),
      ]
      switch Int.random(in: 0..<20, using: &generator) {
      case 0: return .anything
      case 1: return .folderLost
      default:
        return .changed(names.randomElement(using: &generator)!, changes.randomElement(using: &generator)!)
      }
    }

    for _ in 0..<400 {
      let action = Int.random(in: 0..<12, using: &generator)
      let index = model.watches.indices.randomElement(using: &generator)
      switch (action, index) {
      case (0, _) where model.watches.count < 8, (_, nil):
        let watch = FolderWatchState(
          ignoredPrefix: ".own-", reportsWrites: Bool.random(using: &generator), target: randomTarget())
        model.watches.append((state.add(watch), watch))
      case (1, let index?):
        #expect(state.remove(model.watches[index].id) == model.change(at: index) { $0.remove(at: index) })
      case (2, let index?):
        let target = randomTarget()
        let unused = model.change(at: index) { $0[index].state.found(target) }
        #expect(state.found(target, by: model.watches[index].id) == unused)
      case (3, let index?):
        let target = randomTarget()
        let unused = model.change(at: index) { $0[index].state.checked(target) }
        #expect(state.checked(target, by: model.watches[index].id) == unused)
      case (4, let index?):
        model.watches[index].state.couldNotCheck()
        state.couldNotCheck(model.watches[index].id)
      case (5, let index?):
        // A watch that has failed stays so, so failures are made rare.
        if Int.random(in: 0..<5, using: &generator) > 0 { continue }
        let unused = model.change(at: index) { $0[index].state.fail(with: Self.error) }
        #expect(state.fail(model.watches[index].id, with: Self.error) == unused)
      case (6, _):
        var reported: [FolderHubState.WatchID] = []
        for index in model.watches.indices where model.watches[index].state.takeReport() {
          reported.append(model.watches[index].id)
        }
        #expect(state.takeReports() == reported)
      case (7, let index?):
        #expect(
          state.takeChangedFiles(of: model.watches[index].id) == model.watches[index].state.takeChangedFiles())
      default:
        let event = randomEvent()
        let descriptor =
          Int.random(in: 0..<50, using: &generator) == 0 ? nil : Self.descriptors.randomElement(using: &generator)!
        state.record(FolderHubState.Event(descriptor: descriptor, folderEvent: event))
        for index in model.watches.indices {
          guard descriptor == nil || model.watches[index].state.target?.descriptor == descriptor else { continue }
          model.watches[index].state.record(event)
        }
      }
      for descriptor in Self.descriptors { #expect(state.isUsed(descriptor) == model.isUsed(descriptor)) }
      #expect(state.isIdle == !Self.descriptors.contains { model.isUsed($0) })
      #expect(state.watchesThatMustFindFolder == model.watches.filter(\.state.mustFindFolder).map(\.id))
      for (id, watch) in model.watches { #expect(state.target(of: id) == watch.target) }
    }
  }
}
