/// A channel as positions: which elements are kept, where each subscriber stands, and which of them wait.
///
/// There are no elements here, no locks and no continuations. Every element has a position, counted from the first one
/// sent. The elements from ``floor`` to ``head`` are kept, once, for all subscribers:
///
/// ```
///        floor            cursor of A      cursor of B     head
///          │                   │                │            │
///   ┄ gone ┼───────────────────┴────────────────┴────────────┤ the next element
///          │                              ├── replay of 4 ───┤
///          └ the slowest reader needs this one
/// ```
///
/// A **cursor subscriber** reads what is kept and has nothing but a cursor. Its policy is arithmetic: of a cursor
/// subscriber with capacity *k* only the last *k* positions count, so its place is `max(cursor, head - k)`, and what
/// lies between is dropped. The replay is where a new cursor starts. A **buffered subscriber** keeps the beginning of
/// its backlog and so has a buffer of its own, of which the state knows how many elements it holds.
///
/// Every input is a method that changes the state and returns what is to be done about it. The caller performs that;
/// what resumes or releases, after it has left its lock. `Waiter` is whatever stands for a suspended call of `next()`.
///
/// Invariants:
/// - A subscriber that waits has nothing to read: a cursor subscriber's cursor is at `head`, a buffered subscriber's
///   buffer is empty.
/// - `floor` is at most the replay's start and the place of every cursor subscriber. It lags behind their minimum by at
///   most ``releaseInterval`` sends, and not at all while all cursor subscribers wait.
/// - What a subscriber received, dropped and has left to read is what was replayed to it and sent while its intake was
///   open.
/// - `subscriberCount` is the number of subscribers whose intake is open.
struct ChannelState<Waiter> {
  /// After how many sends, at the latest, an element that no subscriber needs is released.
  static var releaseInterval: Int { 16 }

  // The properties are changed by the methods of this type only, in this file and in `ChannelState+Reading.swift`.

  /// The position that the next element gets: how many were sent.
  var head = 0
  /// The position of the oldest element that is kept.
  var floor = 0
  var hasEnded = false
  var subscriberCount = 0
  /// The buffered subscribers that take elements.
  var collectors: ContiguousArray<Int> = []

  let replayLimit: Int
  var resetPosition = 0
  var cursors: ContiguousArray<Cursor> = []
  var readers: ContiguousArray<ReaderState<Waiter>> = []
  var unusedReaders: ContiguousArray<Int> = []
  var waitingReaders: ContiguousArray<Int> = []
  /// The cursor subscribers that have not ended.
  var followers: ContiguousArray<Int> = []
  var waitingFollowerCount = 0
  var slowestFollower = 0

  /// A cursor subscriber's place.
  ///
  /// Apart from the rest of the subscriber, so that all places are found in few cache lines.
  struct Cursor {
    static var none: Cursor { Cursor(position: .max, capacity: .max) }

    var position: Int
    let capacity: Int
  }

  init(replayLimit: Int) {
    precondition(replayLimit >= 0, "'replay' must be at least 0, but is \(replayLimit).")
    self.replayLimit = replayLimit
  }

  /// The first position that a new subscriber gets.
  var replayStart: Int { max(head - replayLimit, resetPosition) }

  var allFollowersWait: Bool { waitingFollowerCount == followers.count }

  /// Whether some subscriber would keep a further element and neither drop it nor fail because of it.
  var isElementUseful: Bool {
    !followers.isEmpty
      || collectors.contains { id in
        guard let collection = readers[id].collection else { return true }
        return collection.count < collection.capacity || collection.overflow == .replaceNewest
      }
  }

  // MARK: - Sending

  enum CollectAction {
    /// The buffered subscriber waits and the element is handed off to it by ``send()``.
    case handedOver
    /// Add the element to the buffered subscriber's buffer.
    case append
    /// Put the element in the place of the buffer's last one.
    case replaceLast
    /// Nothing: the element is dropped, and the buffered subscriber may take no more now.
    case drop
  }

  /// Offers the element that is about to be sent to one of the ``collectors``.
  ///
  /// Comes before ``send()``.
  ///
  /// A buffered subscriber that overflows leaves ``collectors``, so go through them from the last to the first.
  mutating func collect(at index: Int) -> CollectAction {
    let id = collectors[index]
    guard readers[id].firstWaiter == nil, let collection = readers[id].collection else { return .handedOver }
    if collection.count < collection.capacity {
      readers[id].collection!.count += 1
      return .append
    }
    readers[id].droppedCount += 1
    switch collection.overflow {
    case .dropNewest: return .drop
    case .replaceNewest: return .replaceLast
    case .error:
      readers[id].collection!.hasOverflowed = true
      readers[id].intake = .closed
      subscriberCount -= 1
      collectors.remove(at: index)
      return .drop
    }
  }

  /// Who is to be resumed.
  enum Resumptions {
    case none
    case one(Waiter)
    case many(ContiguousArray<Waiter>)
  }

  /// Gives the next position to an element.
  ///
  /// The channel must not have ended.
  ///
  /// - Returns: Whether the element is to be kept, and who is to be resumed with it.
  mutating func send() -> (keep: Bool, resume: Resumptions) {
    let keep = replayLimit > 0 || !allFollowersWait
    head += 1
    if !keep { floor = head }
    return (keep, waitingReaders.isEmpty ? .none : takeWaiters())
  }

  /// Takes one waiter of each subscriber that waits, for the hand-off of the last element.
  ///
  /// A cursor subscriber's cursor passes that element.
  mutating func takeWaiters() -> Resumptions {
    if waitingReaders.count == 1 {
      let id = waitingReaders[0]
      let (waiter, isWaiting, isFollower) = readers[id].takeWaiter()
      if isFollower { cursors[id].position = head }
      if !isWaiting { removeFromWaiting(id, isFollower: isFollower) }
      return .one(waiter)
    }
    var waiters = ContiguousArray<Waiter>()
    waiters.reserveCapacity(waitingReaders.count)
    var stillWaiting = 0
    for id in waitingReaders {
      let (waiter, isWaiting, isFollower) = readers[id].takeWaiter()
      waiters.append(waiter)
      if isFollower { cursors[id].position = head }
      if isWaiting {
        readers[id].indexInWaitingReaders = stillWaiting
        waitingReaders[stillWaiting] = id
        stillWaiting += 1
      } else if isFollower {
        waitingFollowerCount -= 1
      }
    }
    waitingReaders.removeLast(waitingReaders.count - stillWaiting)
    return .many(waiters)
  }

  /// Takes all waiters of a subscriber.
  mutating func takeAllWaiters(of id: Int, into waiters: inout ContiguousArray<Waiter>) {
    guard let first = readers[id].firstWaiter.take() else { return }
    waiters.append(first)
    waiters.append(contentsOf: readers[id].otherWaiters)
    readers[id].otherWaiters.removeAll()
    removeFromWaiting(id, isFollower: readers[id].isFollower)
  }

  /// Ends the channel, if nothing has ended it yet.
  ///
  /// - Returns: Who is to be resumed, to find the end; nil when the channel had ended.
  mutating func finish() -> ContiguousArray<Waiter>? {
    if hasEnded { return nil }
    hasEnded = true
    subscriberCount = 0
    for id in collectors { readers[id].intake = .closed }
    for id in followers { readers[id].intake = .closed }
    collectors.removeAll()
    var waiters = ContiguousArray<Waiter>()
    for index in waitingReaders.indices.reversed() { takeAllWaiters(of: waitingReaders[index], into: &waiters) }
    return waiters
  }

  /// Empties the replay and leaves the subscribers' backlogs.
  mutating func resetReplay() {
    resetPosition = head
  }

  // MARK: - Releasing

  /// Whether ``raiseFloor()`` is worth while after a send.
  var isReleaseDue: Bool { head % Self.releaseInterval == 0 || allFollowersWait }

  /// Moves the floor up to the first position that is still needed.
  ///
  /// Takes time for each cursor subscriber, unless the replay needs all that is kept, all cursor subscribers wait, or
  /// the slowest one has not moved.
  ///
  /// - Returns: How many of the oldest elements are not kept any more.
  mutating func raiseFloor() -> Int {
    var needed = replayStart
    if needed == floor { return 0 }
    if !allFollowersWait {
      let slowest = cursors[slowestFollower]
      if slowest.capacity == .max, slowest.position == floor { return 0 }
      for id in followers {
        let place = place(of: cursors[id])
        if place < needed {
          needed = place
          slowestFollower = id
        }
      }
    }
    defer { floor = needed }
    return needed - floor
  }

  /// The first position that counts for a cursor.
  func place(of cursor: Cursor) -> Int {
    max(cursor.position, head &- cursor.capacity)
  }
}
