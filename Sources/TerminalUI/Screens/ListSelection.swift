/// The selected row of a list.
///
/// ``select(_:in:)`` and ``anchor(in:)`` record the id and the index of the selected row. The selection then follows
/// the row when the row moves. If the row is removed, the selection is the row at the recorded index, or the last row
/// if the list is too short.
package struct ListSelection<ID: Hashable> {
  private var recordedID: ID?
  private var recordedIndex = 0

  package init() {}

  /// Returns the index of the selected row; 0 if the list is empty.
  ///
  /// - Complexity: O(*n*), where *n* is the number of rows.
  package func index(in ids: [ID]) -> Int {
    ids.firstIndex { $0 == recordedID } ?? max(0, min(recordedIndex, ids.count - 1))
  }

  /// Selects the row at an index, or the nearest row if the index is out of bounds.
  ///
  /// Does nothing if the list is empty.
  package mutating func select(_ index: Int, in ids: [ID]) {
    guard !ids.isEmpty else { return }
    recordedIndex = max(0, min(index, ids.count - 1))
    recordedID = ids[recordedIndex]
  }

  /// Selects the last row, and each row that becomes the last one, until ``anchor(in:)`` or another selection.
  package mutating func selectLast() {
    recordedID = nil
    recordedIndex = .max
  }

  /// Records the id and the index of the selected row, so that the selection survives a change of the list.
  package mutating func anchor(in ids: [ID]) {
    select(index(in: ids), in: ids)
  }

  /// Moves the selection if the key is a movement key.
  ///
  /// - Returns: Whether the key is a movement key.
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
}

extension KeyHint {
  package static let move = KeyHint(key: "j/k ↓/↑", action: "move")
}
