/// Decides which replies are too old to be shown, so that nobody ever sees an older value after a newer one.
///
/// Keep one for each key. Draw a ticket when a request begins, and ask ``accept(_:)`` when its reply is there.
///
/// ## What "older" means
///
/// A server does not say when it made a reply; all that is known is that it was between the beginning of the request
/// and the arrival of the reply. So of two requests one is certainly the older only if its reply had arrived before the
/// other began. Where they overlap, nobody can say: the request that began, or arrived, first may have been served
/// last. Therefore a reply is accepted only if its request began **after the last accepted reply had arrived**. The
/// accepted ones then follow one another without an overlap, which is their order on the server too.
///
/// This covers fetches and mutations alike:
/// - A fetch that began before a mutation was confirmed does not overwrite the mutation's reply.
/// - Of fetches that overlap, the first to arrive is accepted, and the others are not.
/// - A mutation's reply is not accepted where a fetch that overlapped it was. The server has the change, though whether
///   that fetch saw it cannot be known: keep the pending edit, tell ``PendingEdits/confirm(_:at:)``, and fetch again.
///
/// There is always a way ahead: of all requests that begin after an acceptance, the first to arrive is accepted.
///
/// A value that comes by another way than a reply, such as one that another process has stored, counts as an acceptance
/// at the moment it is seen: tell ``overtake(at:)``.
public struct VersionGuard: Hashable, Sendable {
  /// The moment at which a request began, in the order of one guard.
  public struct Ticket: Hashable, Comparable, Sendable {
    let number: UInt64

    /// Whether one moment was before another.
    public static func < (earlier: Ticket, later: Ticket) -> Bool {
      earlier.number < later.number
    }
  }

  private var lastDrawn: UInt64 = 0
  /// Tickets up to this one were drawn before the last accepted reply arrived, or another value was seen.
  private var barrier: UInt64 = 0

  /// Creates a guard that has accepted nothing yet.
  public init() {}

  /// Draws the ticket of a request that begins now, or marks the present moment.
  public mutating func begin() -> Ticket {
    lastDrawn += 1
    return Ticket(number: lastDrawn)
  }

  /// Whether a reply that arrives now is certainly newer than every reply accepted before; then it counts as accepted.
  ///
  /// - Parameter ticket: The ticket that this guard gave when the request began.
  public mutating func accept(_ ticket: Ticket) -> Bool {
    accept(ticket, arrivedAt: Ticket(number: lastDrawn))
  }

  /// Whether a reply that arrived a while ago is certainly newer than every reply accepted before; then it counts as
  /// accepted at the moment it arrived.
  ///
  /// For replies that wait for one another to be stored: ask in the order they arrived.
  ///
  /// - Parameters:
  ///   - ticket: The ticket that this guard gave when the request began.
  ///   - moment: A ticket drawn when the reply arrived.
  public mutating func accept(_ ticket: Ticket, arrivedAt moment: Ticket) -> Bool {
    guard ticket.number > barrier else { return false }
    overtake(at: moment)
    return true
  }

  /// A value came by another way than a reply: none is accepted any more whose request began before it was seen.
  ///
  /// - Parameter moment: A ticket drawn when the value was seen.
  public mutating func overtake(at moment: Ticket) {
    barrier = max(barrier, moment.number)
  }
}
