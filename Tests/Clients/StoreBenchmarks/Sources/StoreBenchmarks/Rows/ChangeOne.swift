internal import BenchmarkKit
internal import DataStore
internal import Foundation

/// Changes of one element of a large value, a different element each time.
///
/// The element is changed before the clock starts, so only the save is measured.
struct ChangeOne: Sendable {
  /// The form in which a store keeps the value.
  enum Form: String, CaseIterable {
    case parts = "in parts"
    case whole
  }

  static let grdbLabel = "\(SystemName.grdb.label), one row"

  private let options: Options
  private let workspace: Workspace

  init(_ options: Options, _ workspace: Workspace) {
    (self.options, self.workspace) = (options, workspace)
  }

  static func label(_ kind: StoreSystem.Kind, _ form: Form) -> String { "\(kind.label), \(form.rawValue)" }

  static func sizeLabel(_ elementCount: Int) -> String { "\(elementCount) elements" }

  /// One comparison for each number of elements.
  var comparisons: [Comparison<Setting>] {
    Set([100, 1_000, 10_000].map { options.scaled($0, atLeast: 100) }).sorted().map { elementCount in
      let stores = StoreSystem.Kind.allCases.flatMap { kind in
        [
          contestant(kind, .parts, PartitionedItemList.self, elementCount),
          contestant(kind, .whole, WholeItemList.self, elementCount),
        ]
      }
      return Comparison(
        Setting(row: .changeOne, variant: Self.sizeLabel(elementCount)),
        contestants: stores + [grdbContestant(elementCount)])
    }
  }

  private func contestant<List: ItemList>(
    _ kind: StoreSystem.Kind, _ form: Form, _ type: List.Type, _ elementCount: Int
  ) -> Contestant {
    // In the form `whole`, a longer list is changed fewer times, because each save encodes all of it.
    let count = options.scaled(form == .whole ? 20_000 / elementCount : 100)
    return Contestant(label: Self.label(kind, form), count: count) {
      try await workspace.withFolder { folder in
        let store = kind.open(in: folder)
        let key = StoreKey<List>("list")
        var list = List(items: items(elementCount))
        try await store.save(list, for: key)
        let readings = try await measureChanges(count, elementCount) { index, step in
          list.items[index] = list.items[index].changed(in: step)
        } save: { _ in
          try await store.save(list, for: key)
        }
        guard try await kind.open(in: folder).load(key)?.value == list else {
          throw BenchmarkError.wrongValue(system: Self.label(kind, form), id: key.collection)
        }
        return readings
      }
    }
  }

  private func grdbContestant(_ elementCount: Int) -> Contestant {
    let count = options.scaled(100)
    return Contestant(label: Self.grdbLabel, count: count) {
      try await workspace.withFolder { folder in
        var items = items(elementCount)
        let table = try ItemTable(items, in: folder)
        var lastChanged: Item?
        let readings = try await measureChanges(count, elementCount) { index, step in
          items[index] = items[index].changed(in: step)
          lastChanged = items[index]
        } save: { index in
          try await table.update(items[index])
        }
        if let lastChanged, try await !table.hasState(of: lastChanged) {
          throw BenchmarkError.wrongValue(system: Self.grdbLabel, id: "\(lastChanged.id)")
        }
        return readings
      }
    }
  }

  private func measureChanges(
    _ count: Int, _ elementCount: Int, change: (_ index: Int, _ step: Int) -> Void,
    save: (_ index: Int) async throws -> Void
  ) async throws -> [Reading] {
    var times = OperationTimes()
    for step in 1...count {
      // A stride that shares no factor with the number of elements visits every element before it repeats one.
      let index = step * 7_919 % elementCount
      change(index, step)
      try await times.measure { try await save(index) }
    }
    return [times.reading("change")]
  }

  private func items(_ count: Int) -> [Item] { (0..<count).map(Item.init(id:)) }
}
