/// Decides which replies are too old to be stored, so that no observer sees an older value after a newer one.
///
/// ## The problem
/// A server doesn't say when it made a reply. All that is known is that it was between the beginning of the request and
/// the arrival of the reply. So of two requests one is certainly older only if its reply had arrived before the other
/// one began. Where they overlap, the request that began first may have been served last.
///
/// Taking the reply that arrives last is wrong: a slow fetch that began before a mutation would take the mutation back.
/// Taking the reply whose request began last is wrong too, because the server may serve requests in any order.
///
/// ## The rule
/// A value is accepted only if its request began **after the last accepted reply had arrived**. Accepted values then
/// follow one another without an overlap, which is their order on the server too. There is always a way ahead: of all
/// requests that begin after an acceptance, the first to arrive is accepted.
///
/// ## Two barriers
/// Some mutations are confirmed without a value: what they do is then applied to the stored value. That is right if the
/// stored value doesn't have the change yet, so if the value came from the server **before the mutation was sent**. That
/// other mutations were confirmed meanwhile does no harm, because each is applied by itself. A value, however, may lack
/// any mutation that was confirmed after its request began. So there is one barrier for values, moved by every change of
/// the base, and one for changes, moved only by values that came from the server or from another process.
struct VersionBarriers: Sendable {
  /// A moment in the logical time of one value.
  struct Timestamp: Hashable, Comparable, Sendable {
    fileprivate let number: UInt64

    static func < (earlier: Timestamp, later: Timestamp) -> Bool { earlier.number < later.number }
  }

  private var lastNumber: UInt64 = 0
  /// When the base last became a value of the server or of another process.
  private var valueBarrier: UInt64 = 0
  /// When the base last changed in any way.
  private var changeBarrier: UInt64 = 0

  /// Returns the present moment, which is later than all that were returned before.
  mutating func now() -> Timestamp {
    lastNumber += 1
    return Timestamp(number: lastNumber)
  }

  /// Accepts a whole value if it is certainly newer than the base.
  ///
  /// - Parameters:
  ///   - request: When the request began.
  ///   - arrival: When the reply arrived.
  mutating func acceptValue(requestedAt request: Timestamp, arrivedAt arrival: Timestamp) -> Bool {
    guard request.number > changeBarrier else { return false }
    overtake(at: arrival)
    return true
  }

  /// Accepts a change of the base if the base certainly doesn't have it yet.
  ///
  /// - Parameters:
  ///   - request: When the request began.
  ///   - arrival: When the reply arrived.
  mutating func acceptChange(requestedAt request: Timestamp, arrivedAt arrival: Timestamp) -> Bool {
    guard request.number > valueBarrier else { return false }
    changeBarrier = max(changeBarrier, arrival.number)
    return true
  }

  /// Records that the base changed otherwise: requests that began before are too old.
  mutating func overtake(at moment: Timestamp) {
    valueBarrier = max(valueBarrier, moment.number)
    changeBarrier = max(changeBarrier, moment.number)
  }

  /// Takes back what was accepted since a copy was made.
  ///
  /// Time goes on.
  mutating func restoreBarriers(of earlier: VersionBarriers) {
    (valueBarrier, changeBarrier) = (earlier.valueBarrier, earlier.changeBarrier)
  }
}
