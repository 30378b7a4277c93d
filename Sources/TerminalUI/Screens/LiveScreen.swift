/// A screen on a terminal: a picture of what it observes, and what its keys do.
@MainActor
package protocol LiveScreen: AnyObject, Sendable {
  /// The picture, in this size; `nil` while no picture may be shown.
  ///
  /// It is asked for again whenever an `@Observable` property that it read has changed.
  func frame(size: TerminalSize) -> Frame?

  /// Does what a key asks for at once, and returns the rest; `nil` if there is no rest.
  ///
  /// - Parameter size: The size of the picture the key belongs to.
  func press(_ key: Key, size: TerminalSize) -> KeyResponse?

  /// Does what the screen does beside the keys, until it is cancelled.
  func run() async
}

/// What a key asks for that takes time.
package enum KeyResponse: Sendable {
  /// Something that runs beside the keys that follow; it is cancelled when the user leaves, and waited for.
  case perform(@MainActor @Sendable () async -> Void)
  /// Something that changes what the keys mean: those that follow wait until it has ended, and are forgotten where the
  /// user leaves meanwhile. It is cancelled then, and waited for.
  case performFirst(@MainActor @Sendable () async -> Void)
  /// To leave.
  case quit
}
