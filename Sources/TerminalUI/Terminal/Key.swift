/// A key that the user pressed, or a text that the user pasted.
package enum Key: Hashable, Sendable {
  case character(Character)
  /// Text that was pasted, not typed. It is inserted where text can be typed, and has no meaning elsewhere.
  case pasted(String)
  /// A letter, in lower case, typed with the Control key.
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
  /// Tab with the Shift key.
  case backTab
  case backspace
  case escape
}
