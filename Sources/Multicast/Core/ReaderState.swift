/// The state of one subscriber of a ``ChannelState``: its intake, its suspended calls, and its count of dropped
/// elements.
struct ReaderState<Waiter> {
  /// Whether the subscriber accepts elements.
  ///
  /// - `open`: It accepts elements.
  /// - `closed`: It accepts no more elements, because the channel has terminated or its buffer overflowed, but has yet
  ///   to deliver its backlog or the termination.
  /// - `ended`: It has delivered the termination, or was cancelled. Every read returns `nil`.
  enum Intake { case open, closed, ended }

  var intake = Intake.open
  /// The buffer of a buffered subscriber, or `nil` for a cursor subscriber.
  var collection: BufferState?
  /// The suspended call that is served next.
  var firstWaiter: Waiter?
  /// The suspended calls served after the first one.
  ///
  /// There are none unless several tasks share the subscription.
  var otherWaiters = ContiguousArray<Waiter>()
  var indexInWaitingReaders = 0
  var indexInFollowers = 0
  /// Whether the last read took more than one element, so that elements may be left in the subscriber's batch.
  ///
  /// If so, a concurrent call of the same subscriber must check the batch before it suspends.
  var hasBatch = false
  var droppedCount = 0

  var isFollower: Bool { collection == nil }

  /// Whether the subscriber has something to read, including a termination.
  ///
  /// - Parameter place: The place of a cursor subscriber, which is not evaluated for a buffered subscriber.
  func isReadable(at place: @autoclosure () -> Int, head: Int) -> Bool {
    if intake != .open || hasBatch { return true }
    guard let collection else { return place() < head }
    return collection.count > 0
  }

  /// Stores a waiter.
  ///
  /// - Parameter index: The subscriber's index among the waiting subscribers, if this is its first waiter.
  mutating func park(_ waiter: Waiter, index: Int) -> (isFirst: Bool, isFollower: Bool) {
    guard firstWaiter == nil else {
      otherWaiters.append(waiter)
      return (false, isFollower)
    }
    firstWaiter = waiter
    indexInWaitingReaders = index
    return (true, isFollower)
  }

  /// Takes the waiter that is served next.
  mutating func takeWaiter() -> (waiter: Waiter, isWaiting: Bool, isFollower: Bool) {
    let waiter = firstWaiter.take()!
    if !otherWaiters.isEmpty { firstWaiter = otherWaiters.removeFirst() }
    return (waiter, firstWaiter != nil, isFollower)
  }
}

/// The capacity and the element count of a buffered subscriber's buffer.
struct BufferState {
  let capacity: Int
  let overflow: CollectionOverflow
  var count: Int
  var hasOverflowed = false
}

/// The behaviour of a buffered subscriber when an element arrives while its buffer is full.
enum CollectionOverflow {
  case dropNewest
  case replaceNewest
  case error
}
