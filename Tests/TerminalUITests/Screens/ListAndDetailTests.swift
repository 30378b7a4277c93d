import Testing

@testable import TerminalUI

@Suite struct ListAndDetailTests {
  @Test(arguments: [(80, 24), (70, 10), (69, 24), (60, 18), (60, 17), (40, 10)])
  func `A page key moves by the number of rows that the list shows, minus one`(columns: Int, rows: Int) {
    let size = TerminalSize(columns: columns, rows: rows)
    var frame = Frame(size: size)
    let layout = ListAndDetail(dividing: ScreenChrome.body(of: size), of: &frame)
    #expect(ListAndDetail.pageHeight(of: size) == layout.list.rows.count - 1)
  }

  @Test func `A page key moves by one row in a terminal that is too small for the screen`() {
    #expect(ListAndDetail.pageHeight(of: TerminalSize(columns: 5, rows: 1)) == 1)
  }
}
