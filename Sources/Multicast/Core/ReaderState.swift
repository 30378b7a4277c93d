/// One reader of a ``ChannelState``: whether it takes elements, who waits for it, and what it lost.
struct ReaderState<Waiter> {
  enum Intake { case open, closed, ended }

  var intake = Intake.open
  /// Nil for a follower.
  var collection: Collection?
  /// The suspended call that came first.
  ///
  /// One is all there is, unless several tasks share a subscription.
  var firstWaiter: Waiter?
  var otherWaiters = ContiguousArray<Waiter>()
  var indexInWaitingReaders = 0
  var indexInFollowers = 0
  /// Whether the last read took more than one element, so that some may still be in the reader's batch.
  ///
  /// Another call of the same reader then must look there before it waits.
  var hasBatch = false
  var droppedCount = 0

  var isFollower: Bool { collection == nil }

  /// Whether there is something to read, for a follower at a place.
  func isReadable(at place: @autoclosure () -> Int, head: Int) -> Bool {
    if intake != .open || hasBatch { return true }
    guard let collection else { return place() < head }
    return collection.count > 0
  }

  /// Keeps a waiter.
  ///
  /// The first one makes the reader wait, at an index of the waiting readers.
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

/// The buffer of a collector, as a count.
struct Collection {
  let capacity: Int
  let overflow: CollectionOverflow
  var count: Int
  var hasOverflowed = false
}

/// What a collector does with an element for which it has no place.
enum CollectionOverflow {
  case dropNewest
  case replaceNewest
  case error
}
