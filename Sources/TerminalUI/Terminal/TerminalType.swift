package import Multicast

/// Something that happened at a terminal.
package enum TerminalEvent: Hashable, Sendable {
  /// Bytes of the keyboard.
  case input([UInt8])
  /// It has this size now, or must be drawn anew.
  case resized(TerminalSize)
  /// Nothing will come from it any more.
  case ended
}

/// A screen and a keyboard.
package protocol TerminalType: Sendable {
  /// What happens from ``open()`` on, for subscribers from before that.
  var events: MulticastStream<TerminalEvent, Never> { get }

  /// Takes the terminal over, and returns its size.
  func open() async throws(TerminalError) -> TerminalSize

  /// Shows a frame; returns when it is written.
  func show(_ frame: Frame) async throws(TerminalError)

  /// Gives the terminal to the shell until the user comes back.
  func suspend() async

  /// Gives the terminal back as it was; returns when nothing waits for its keys any more.
  func close() async
}
