/// The version guard of one value: decides which replies may be stored, so that no observer sees an older value after a
/// newer one.
///
/// ## The problem
/// A server's reply doesn't say when it was made. The client only knows that the server made it at some moment between
/// the beginning of the request and the arrival of the reply. One request is certainly older than another only if its
/// reply had arrived before the other request began. If two requests overlap, the server may have processed them in
/// either order.
///
/// ## The naive ways
/// Storing the reply that *arrives last* is wrong, because a slow fetch that began before a mutation would undo the
/// mutation. Storing the reply whose *request began last* is wrong too, because the server may process overlapping
/// requests in any order.
///
/// ## The rule
/// Each beginning of a request and each arrival of a reply takes a logical timestamp. A value is accepted only if its
/// request began **after the last accepted reply had arrived**. The requests of accepted values therefore never
/// overlap, so the values are stored in the order in which the server made them. A rejected value isn't stored, and its
/// fetch is repeated. That makes progress: of all requests that begin after an acceptance, the one whose reply arrives
/// first is accepted.
///
/// ## Joining
/// Mutations may be confirmed faster than a value can be fetched. A value is therefore also accepted if only *changes*
/// of mutations were accepted since its request began, and all of them can be applied to it again; see
/// ``RecentChanges``. A value that equals the base is accepted in any case, and moves no barrier, because it changes
/// nothing. A fetch that overlaps with changes that can't be applied twice, or with values of other writers, is repeated
/// with growing pauses.
///
/// ## Two barriers
/// Some mutations are confirmed without a value; their change is then applied to the stored value, the *base*. That is
/// correct only if the base doesn't include the change yet, which is certain if the base came from the server **before
/// the mutation was sent**. It stays correct if other mutations are confirmed in between, because each change is
/// applied separately. A value of the server, however, may lack a mutation that was confirmed after the value's request
/// began. There are therefore two barriers: a change must have been requested after the last *replacement* of the base,
/// and a value after the last *change* of any kind.
///
/// ## Several writers
/// Timestamps are local to this process. A value that another writer stored counts as a replacement, because the reply
/// to an earlier request isn't certainly newer. A commit requires that the store still holds the base that its replies
/// were judged against. Otherwise the commit fails, the barriers return to their earlier state, and the same replies
/// are judged against the new base.
struct VersionBarriers: Sendable {
  /// A logical timestamp, which is comparable only with those of the same value.
  struct Timestamp: Hashable, Comparable, Sendable {
    fileprivate let number: UInt64

    static func < (earlier: Timestamp, later: Timestamp) -> Bool { earlier.number < later.number }
  }

  private var lastNumber: UInt64 = 0
  /// The timestamp of the last accepted value or page, or of the last value that another writer stored.
  private var lastReplacement: UInt64 = 0
  /// The timestamp of the last change of the base, whether its replacement or the accepted change of a mutation.
  private var lastChange: UInt64 = 0
  /// The timestamp of the last request of an accepted value that isn't only an adjacent page.
  private var lastRefresh: UInt64 = 0
  /// The timestamp of the last request of an accepted whole value.
  private var lastWholeRefresh: UInt64 = 0

  /// Returns a timestamp that is later than all that were returned before.
  mutating func now() -> Timestamp {
    lastNumber += 1
    return Timestamp(number: lastNumber)
  }

  /// Accepts a value or a page of the server if it is certainly newer than the base, which then changes.
  ///
  /// The new base is the value, or the page joined to the old base.
  ///
  /// - Parameters:
  ///   - request: The timestamp of the beginning of the request.
  ///   - arrival: The timestamp of the arrival of the reply.
  mutating func acceptValue(requestedAt request: Timestamp, arrivedAt arrival: Timestamp) -> Bool {
    guard isNewer(requestedAt: request) else { return false }
    recordReplacement(at: arrival)
    return true
  }

  /// Accepts the change of a mutation if the base certainly doesn't include it yet.
  ///
  /// - Parameters:
  ///   - request: The timestamp of the beginning of the request.
  ///   - arrival: The timestamp of the arrival of the reply.
  mutating func acceptChange(requestedAt request: Timestamp, arrivedAt arrival: Timestamp) -> Bool {
    guard request.number > lastReplacement else { return false }
    lastChange = max(lastChange, arrival.number)
    return true
  }

  /// Returns whether a value is certainly newer than the base but for changes that were accepted since its request.
  func isNewerExceptForChanges(requestedAt request: Timestamp) -> Bool { request.number > lastReplacement }

  /// Records that the change of a mutation was accepted that the base may include already.
  mutating func recordChange(at timestamp: Timestamp) {
    lastChange = max(lastChange, timestamp.number)
  }

  /// Records that a value was accepted, and when it was requested.
  ///
  /// - Parameter isWhole: Whether it is a whole value, not only the newest or first page.
  mutating func recordRefresh(requestedAt request: Timestamp, isWhole: Bool) {
    lastRefresh = max(lastRefresh, request.number)
    if isWhole { lastWholeRefresh = max(lastWholeRefresh, request.number) }
  }

  /// Returns whether a value was accepted that was requested after a timestamp.
  ///
  /// - Parameter isWhole: Whether only whole values count.
  func isRefreshed(since timestamp: Timestamp, isWhole: Bool) -> Bool {
    (isWhole ? lastWholeRefresh : lastRefresh) > timestamp.number
  }

  /// Returns whether a value is certainly newer than the base.
  func isNewer(requestedAt request: Timestamp) -> Bool { request.number > lastChange }

  /// Records that the base was replaced: requests that began earlier are too old from now on.
  mutating func recordReplacement(at timestamp: Timestamp) {
    lastReplacement = max(lastReplacement, timestamp.number)
    lastChange = max(lastChange, timestamp.number)
  }

  /// Restores the barriers of an earlier copy, as if nothing had been accepted since.
  ///
  /// ``now()`` isn't reset, so it returns no timestamp twice.
  mutating func restoreBarriers(of earlier: VersionBarriers) {
    (lastReplacement, lastChange) = (earlier.lastReplacement, earlier.lastChange)
    (lastRefresh, lastWholeRefresh) = (earlier.lastRefresh, earlier.lastWholeRefresh)
  }
}
