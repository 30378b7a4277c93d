/// A key that was pressed.
package enum Key: Hashable, Sendable {
  case character(Character)
  /// Text that was not typed but pasted, so that it is text wherever text is typed, and means nothing elsewhere.
  case pasted(String)
  /// A letter, in lower case, with the control key.
  case control(Character)
  case up
  case down
  case left
  case right
  case home
  case end
  case pageUp
  case pageDown
  case enter
  case tab
  /// Tab with the shift key.
  case backTab
  case backspace
  case escape
}
