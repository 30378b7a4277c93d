/// A screen on a terminal: draws the values that it observes, and handles keys.
@MainActor
package protocol LiveScreen: AnyObject, Sendable {
  /// Returns the frame to show in a terminal of this size; `nil` to keep the last frame on the terminal.
  ///
  /// A ``ScreenSession`` calls this method again after a change of any `@Observable` property that the last call read.
  func frame(size: TerminalSize) -> Frame?

  /// Handles a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - size: The size of the terminal.
  /// - Returns: The work that is left to the session; `nil` if the key is handled completely.
  func press(_ key: Key, size: TerminalSize) -> KeyResponse?

  /// Runs the work that doesn't depend on keys, such as observing, until the task is cancelled.
  func run() async
}

/// The work that a key leaves to the session.
package enum KeyResponse: Sendable {
  /// Runs an action concurrently with the following keys.
  ///
  /// When the user leaves, the session cancels the action and waits for it.
  case perform(@MainActor @Sendable () async -> Void)
  /// Runs an action that changes the meaning of the following keys.
  ///
  /// Those keys are delivered after the action has completed. When the user leaves, the session discards them, cancels
  /// the action and waits for it.
  case performFirst(@MainActor @Sendable () async -> Void)
  /// Ends the session.
  case quit
}
