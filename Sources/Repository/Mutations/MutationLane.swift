/// The mutations of one ordering key: only the first may be sent.
struct MutationLane: Sendable {
  enum Status: Sendable {
    /// Nothing to send, or the first mutation may not be sent now because a call is writing it or taking it away.
    case idle
    /// In line for a free place.
    case ready
    case sending
    /// Until a deadline; the number tells this wait from earlier ones, whose deadlines may still be to come.
    case backingOff(number: UInt64)
  }

  /// What falls due at a deadline.
  struct BackOff: Sendable {
    let orderingKey: String
    let number: UInt64
  }

  var status = Status.idle

  /// The numbers of those to be sent, in order, without the one being sent.
  var waiting = FIFO<UInt64>()

  /// Mutations whose tickets, if there are any, say that they are under way: to be told once they have to wait.
  var untold: Set<MutationID> = []

  /// Whether the end of the one being sent could not be written down yet.
  var isHeldUp = false

  /// Failed attempts since the last success or kick: how far the backoff has grown.
  var failures = 0
}
