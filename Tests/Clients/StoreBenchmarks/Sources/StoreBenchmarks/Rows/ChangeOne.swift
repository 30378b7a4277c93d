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

  static func title(_ elements: Int) -> String { "\(elements) elements" }

  /// One comparison for each number of elements.
  var comparisons: [Comparison<Setting>] {
    Set([100, 1_000, 10_000].map { options.scaled($0, atLeast: 100) }).sorted().map { elements in
      let stores = StoreSystem.Kind.allCases.flatMap { kind in
        [
          contestant(kind, .parts, PartitionedItemList.self, elements),
          contestant(kind, .whole, WholeItemList.self, elements),
        ]
      }
      return Comparison(Setting(row: .changeOne, part: Self.title(elements)), contestants: stores + [grdb(elements)])
    }
  }

  private func contestant<List: ItemList>(
    _ kind: StoreSystem.Kind, _ form: Form, _ type: List.Type, _ elements: Int
  ) -> Contestant {
    // In the form `whole`, a longer list is changed fewer times, because each save encodes all of it.
    let count = options.scaled(form == .whole ? 20_000 / elements : 100)
    return Contestant(label: Self.label(kind, form), count: count) {
      try await workspace.withFolder { folder in
        let store = kind.open(in: folder)
        let key = StoreKey<List>("list")
        var list = List(items: items(elements))
        try await store.save(list, for: key)
        let readings = try await readings(count, elements) { index, step in
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

  private func grdb(_ elements: Int) -> Contestant {
    let count = options.scaled(100)
    return Contestant(label: Self.grdbLabel, count: count) {
      try await workspace.withFolder { folder in
        var items = items(elements)
        let table = try ItemTable(items, in: folder)
        var changed: Item?
        let readings = try await readings(count, elements) { index, step in
          items[index] = items[index].changed(in: step)
          changed = items[index]
        } save: { index in
          try await table.update(items[index])
        }
        if let changed, try await !table.holds(changed) {
          throw BenchmarkError.wrongValue(system: Self.grdbLabel, id: "\(changed.id)")
        }
        return readings
      }
    }
  }

  private func readings(
    _ count: Int, _ elements: Int, change: (_ index: Int, _ step: Int) -> Void,
    save: (_ index: Int) async throws -> Void
  ) async throws -> [Reading] {
    var times = OperationTimes()
    for step in 1...count {
      // A stride that shares no factor with the number of elements visits every element before it repeats one.
      let index = step * 7_919 % elements
      change(index, step)
      try await times.measure { try await save(index) }
    }
    return [times.reading("change")]
  }

  private func items(_ count: Int) -> [Item] { (0..<count).map(Item.init(id:)) }
}
