package import Multicast

/// An event of a terminal.
package enum TerminalEvent: Hashable, Sendable {
  /// Bytes from the keyboard.
  case input([UInt8])
  /// The terminal was resized, or was taken over again after the program was suspended.
  ///
  /// The screen must be drawn again, even if the size is unchanged.
  case resized(TerminalSize)
  /// The terminal was disconnected, or couldn't be taken over again.
  case ended
}

/// A terminal: a screen and a keyboard.
package protocol TerminalType: Sendable {
  /// The events from ``open()`` on.
  ///
  /// Subscribe before calling ``open()``, because a late subscriber gets no earlier events.
  var events: MulticastStream<TerminalEvent, Never> { get }

  /// Takes over the terminal, and returns its size.
  func open() async throws(TerminalError) -> TerminalSize

  /// Shows a frame, and returns when it is written.
  func show(_ frame: Frame) async throws(TerminalError)

  /// Suspends the program, so that the shell has the terminal until the user continues the program.
  func suspend() async

  /// Restores the terminal to its original state, and returns when its keys are no longer read.
  func close() async
}
