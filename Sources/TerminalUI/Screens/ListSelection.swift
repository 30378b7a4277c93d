/// Which row of a list is selected: the same one wherever it moves, and one near its place when it has gone.
package struct ListSelection<ID: Hashable> {
  private var id: ID?
  private var lastIndex = 0

  package init() {}

  /// The index of the selected row; 0 where there is no row.
  package func index(in ids: [ID]) -> Int {
    ids.firstIndex { $0 == id } ?? max(0, min(lastIndex, ids.count - 1))
  }

  /// Selects a row, or the nearest to it that there is.
  package mutating func select(_ index: Int, in ids: [ID]) {
    guard !ids.isEmpty else { return }
    lastIndex = max(0, min(index, ids.count - 1))
    id = ids[lastIndex]
  }

  /// Selects what is the last row from now on, until another one is selected.
  package mutating func selectLast() {
    id = nil
    lastIndex = .max
  }

  /// Remembers which row is selected, and where, for when it moves or goes.
  package mutating func settle(in ids: [ID]) {
    select(index(in: ids), in: ids)
  }

  /// Moves as a key says; returns whether it is one that moves.
  package mutating func press(_ key: Key, in ids: [ID], pageHeight: Int) -> Bool {
    let index = index(in: ids)
    switch key {
    case .up, .character("k"): select(index - 1, in: ids)
    case .down, .character("j"): select(index + 1, in: ids)
    case .pageUp: select(index - pageHeight, in: ids)
    case .pageDown, .character(" "): select(index + pageHeight, in: ids)
    case .home, .character("g"): select(0, in: ids)
    case .end, .character("G"): select(ids.count - 1, in: ids)
    default: return false
    }
    return true
  }

  /// How many rows a page key moves on a screen.
  package static func pageHeight(of size: TerminalSize) -> Int { max(1, size.rows - 6) }
}

extension KeyHint {
  package static let move = KeyHint(key: "j/k ↓/↑", action: "move")
}
