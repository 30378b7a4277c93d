import Testing

@testable import TerminalUI

struct ListSelectionTests {
  private let ids = ["a", "b", "c", "d"]

  @Test func `The first row is selected initially`() {
    let selection = ListSelection<String>()
    #expect(selection.index(in: ids) == 0)
    #expect(selection.index(in: []) == 0)
  }

  @Test func `The selection follows its row, and moves to a row nearby when its row is removed`() {
    var selection = ListSelection<String>()
    selection.select(2, in: ids)
    #expect(selection.index(in: ["new"] + ids) == 3)
    selection.anchor(in: ["new"] + ids)
    #expect(selection.index(in: ["new", "a", "b", "d"]) == 3)
    #expect(selection.index(in: ["new"]) == 0)
    #expect(selection.index(in: []) == 0)
  }

  @Test func `An index out of bounds selects the nearest row`() {
    var selection = ListSelection<String>()
    selection.select(9, in: ids)
    #expect(selection.index(in: ids) == 3)
    selection.select(-1, in: ids)
    #expect(selection.index(in: ids) == 0)
    // An empty list has no row to select, so the selection is unchanged.
    selection.select(1, in: [])
    #expect(selection.index(in: ids) == 0)
  }

  @Test func `Until a selection of the last row is anchored, it moves to each appended row`() {
    var selection = ListSelection<String>()
    selection.selectLast()
    #expect(selection.index(in: ids) == 3)
    #expect(selection.index(in: ids + ["e"]) == 4)
    selection.anchor(in: ids + ["e"])
    #expect(selection.index(in: ids + ["e", "f"]) == 4)
  }

  @Test func `Movement keys move the selection, and other keys are not handled`() {
    var selection = ListSelection<String>()
    let movementKeys: [Key] = [
      .down, .character("j"), .up, .character("k"), .end, .home, .character("G"), .character("g"), .pageDown, .pageUp,
      .character(" "),
    ]
    var indices: [Int] = []
    for key in movementKeys {
      let isHandled = selection.press(key, in: ids, pageHeight: 2)
      #expect(isHandled)
      indices.append(selection.index(in: ids))
    }
    #expect(indices == [1, 2, 1, 0, 3, 0, 3, 0, 2, 0, 2])
    for key in [Key.enter, .escape, .left, .character("x")] {
      let isHandled = selection.press(key, in: ids, pageHeight: 2)
      #expect(!isHandled)
    }
    #expect(selection.index(in: ids) == 2)
  }
}
