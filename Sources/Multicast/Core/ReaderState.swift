/// One subscriber of a ``ChannelState``: whether it takes elements, which calls wait, and what it lost.
struct ReaderState<Waiter> {
  enum Intake { case open, closed, ended }

  var intake = Intake.open
  /// Nil for a cursor subscriber.
  var collection: Collection?
  /// The suspended call that came first.
  ///
  /// One is all there is, unless several tasks share a subscription.
  var firstWaiter: Waiter?
  var otherWaiters = ContiguousArray<Waiter>()
  var indexInWaitingReaders = 0
  var indexInFollowers = 0
  /// Whether the last read took more than one element, so that some may still be in the subscriber's batch.
  ///
  /// Another call of the same subscriber then must check there before it waits.
  var hasBatch = false
  var droppedCount = 0

  var isFollower: Bool { collection == nil }

  /// Whether there is something to read, for a cursor subscriber at a place.
  func isReadable(at place: @autoclosure () -> Int, head: Int) -> Bool {
    if intake != .open || hasBatch { return true }
    guard let collection else { return place() < head }
    return collection.count > 0
  }

  /// Keeps a waiter.
  ///
  /// The first one makes the subscriber wait, at an index of the waiting subscribers.
  mutating func park(_ waiter: Waiter, index: Int) -> (isFirst: Bool, isFollower: Bool) {
    guard firstWaiter == nil else {
      otherWaiters.append(waiter)
      return (false, isFollower)
    }
    firstWaiter = waiter
    indexInWaitingReaders = index
    return (true, isFollower)
  }

  /// Takes the waiter that came first.
  mutating func takeWaiter() -> (waiter: Waiter, isWaiting: Bool, isFollower: Bool) {
    let waiter = firstWaiter.take()!
    if !otherWaiters.isEmpty { firstWaiter = otherWaiters.removeFirst() }
    return (waiter, firstWaiter != nil, isFollower)
  }
}

/// The buffer of a buffered subscriber, as a count.
struct Collection {
  let capacity: Int
  let overflow: CollectionOverflow
  var count: Int
  var hasOverflowed = false
}

/// What a buffered subscriber does with an element for which it has no place.
enum CollectionOverflow {
  case dropNewest
  case replaceNewest
  case error
}
