extension TextStyle {
  package static let strong = TextStyle(attributes: .bold)
  package static let faint = TextStyle(attributes: .dim)
  package static let heart = TextStyle(color: TerminalColor(basic: 1, indexed: 204, direct: 0xFF5F87))
  package static let accent = TextStyle(
    color: TerminalColor(basic: 6, indexed: 80, direct: 0x5FD7D7), attributes: .bold)
  package static let good = TextStyle(color: TerminalColor(basic: 2, indexed: 114, direct: 0x87D787))
  package static let waiting = TextStyle(color: TerminalColor(basic: 3, indexed: 221, direct: 0xFFD75F))
  package static let bad = TextStyle(color: TerminalColor(basic: 1, indexed: 203, direct: 0xFF5F5F), attributes: .bold)
}
