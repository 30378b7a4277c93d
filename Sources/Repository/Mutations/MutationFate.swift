/// What has become of a mutation.
public enum MutationFate<Reply: Sendable, Failure: Error>: Sendable {
  /// The server has made the change.
  case delivered(Reply)

  /// The server refused, or the attempts are used up. The mutation is kept as a dead letter.
  case refused(Failure)

  /// The mutation was cancelled while it waited.
  ///
  /// Where an attempt had begun before, the server may have made the change all the same.
  case cancelled

  /// The mutation is durable, and has to wait for a later attempt: its own, or one that goes before it.
  case queued
}

extension MutationFate: Equatable where Reply: Equatable, Failure: Equatable {}
