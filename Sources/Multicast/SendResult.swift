/// The result of a channel's `send`.
public enum SendResult: Sendable, Hashable {
  /// The channel accepted the value: each subscriber registered at that time has received it, has it buffered, or has
  /// counted it as dropped.
  case sent
  /// The channel had already terminated. Nothing changed, and no subscriber receives the value.
  case terminated
}
