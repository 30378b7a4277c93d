/// What became of a value given to a channel's `send`.
@frozen
public enum SendResult: Sendable, Hashable {
  /// The value is in the channel's order: every subscriber registered at that moment has it, has it waiting, or has
  /// counted it as dropped.
  case sent
  /// The channel had ended. Nothing changed, and no subscriber gets the value.
  case terminated
}
