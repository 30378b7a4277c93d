/// A pure state machine of a channel's positions: the range of kept elements, each subscriber's cursor, and the
/// suspended calls.
///
/// The state contains no elements, locks or continuations. Every element has a position, counted from the first element
/// sent. The elements from ``floor`` up to ``head`` are kept, once, for all subscribers:
///
/// ```
///        floor            cursor of A      cursor of B     head
///          │                   │                │            │
///   ┄ gone ┼───────────────────┴────────────────┴────────────┤ the next element
///          │                              ├── replay of 4 ───┤
///          └ the slowest subscriber needs this element
/// ```
///
/// A **cursor subscriber** reads the kept elements and has no buffer, only a cursor. Its policy is arithmetic: with
/// capacity *k* it reads at `max(cursor, head - k)`, its *place*, and the elements between its cursor and its place are
/// dropped. A new cursor starts at the beginning of the replay. A **buffered subscriber** keeps the oldest elements of
/// its backlog, and so has a buffer of its own; the state holds the number of elements in it.
///
/// Each input is a method that changes the state and returns the action for the caller to perform. The caller resumes
/// waiters and releases elements only after it has unlocked. `Waiter` is the caller's type for a suspended call of
/// `next()`.
///
/// Invariants:
/// - A waiting subscriber has nothing to read: a cursor subscriber's cursor is at `head`, and a buffered subscriber's
///   buffer is empty.
/// - `floor` is never beyond the start of the replay or the place of a cursor subscriber. It lags behind their minimum
///   by at most ``releaseInterval`` sends, and not at all while all cursor subscribers wait.
/// - For each subscriber, the elements received, dropped and left to read add up to the elements replayed to it and
///   sent while its intake was open.
/// - `subscriberCount` is the number of subscribers whose intake is open.
struct ChannelState<Waiter> {
  /// The maximum number of sends after which an element that is no longer needed is released.
  static var releaseInterval: Int { 16 }

  // Only the methods of this type, here and in `ChannelState+Reading.swift`, may change the properties.

  /// The position of the next element, which is the number of elements sent.
  var head = 0
  /// The position of the oldest kept element.
  var floor = 0
  var hasEnded = false
  var subscriberCount = 0
  /// The ids of the buffered subscribers whose intake is open.
  var collectors: ContiguousArray<Int> = []

  let replayLimit: Int
  /// The position before which no element is replayed, because the replay was reset there.
  var resetPosition = 0
  var cursors: ContiguousArray<Cursor> = []
  var readers: ContiguousArray<ReaderState<Waiter>> = []
  /// The ids that are free for new subscribers.
  var unusedReaders: ContiguousArray<Int> = []
  /// The ids of the subscribers with a suspended call.
  var waitingReaders: ContiguousArray<Int> = []
  /// The ids of the cursor subscribers that have not ended.
  var followers: ContiguousArray<Int> = []
  var waitingFollowerCount = 0
  /// The cursor subscriber that kept the floor down when it was last computed.
  var slowestFollower = 0

  /// A cursor subscriber's cursor and capacity.
  ///
  /// They are stored apart from the rest of the subscriber, so that a scan of all cursors touches few cache lines.
  struct Cursor {
    static var none: Cursor { Cursor(position: .max, capacity: .max) }

    var position: Int
    let capacity: Int
  }

  init(replayLimit: Int) {
    precondition(replayLimit >= 0, "'replay' must be at least 0, but is \(replayLimit).")
    self.replayLimit = replayLimit
  }

  /// The position at which a new subscriber starts.
  var replayStart: Int { max(head - replayLimit, resetPosition) }

  var allFollowersWait: Bool { waitingFollowerCount == followers.count }

  /// Whether at least one subscriber would keep another element, rather than drop it or fail.
  var isElementUseful: Bool {
    !followers.isEmpty
      || collectors.contains { id in
        guard let collection = readers[id].collection else { return true }
        return collection.count < collection.capacity || collection.overflow == .replaceNewest
      }
  }

  // MARK: - Sending

  /// The action to take for a buffered subscriber when an element is sent.
  enum CollectAction {
    /// Do nothing: the subscriber is suspended, and ``send()`` hands the element off to it.
    case handedOver
    /// Append the element to the subscriber's buffer.
    case append
    /// Replace the last element of the subscriber's buffer with the element.
    case replaceLast
    /// Do nothing: the element is dropped. If the policy is `error`, the subscriber's intake has been closed.
    case drop
  }

  /// Offers the next element to one of the ``collectors``.
  ///
  /// The caller calls this for each of them before it calls ``send()``, from the last to the first, because a
  /// subscriber that overflows is removed from ``collectors``.
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

  /// The waiters to resume with an element.
  ///
  /// The cases avoid an array for the common numbers of waiters.
  enum Resumptions {
    case none
    case one(Waiter)
    case many(ContiguousArray<Waiter>)
  }

  /// Assigns the next position to an element.
  ///
  /// - Precondition: The channel has not terminated.
  /// - Returns: Whether to keep the element, and the waiters to resume with it.
  mutating func send() -> (keep: Bool, resume: Resumptions) {
    let keep = replayLimit > 0 || !allFollowersWait
    head += 1
    if !keep { floor = head }
    return (keep, waitingReaders.isEmpty ? .none : takeWaiters())
  }

  /// Takes one waiter of each waiting subscriber, for the hand-off of the last element.
  ///
  /// A cursor subscriber's cursor moves past that element.
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

  /// Terminates the channel, unless it has already terminated.
  ///
  /// - Returns: The waiters to resume, which then find the termination, or `nil` if the channel had already terminated.
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

  /// Empties the replay without changing the subscribers' backlogs.
  mutating func resetReplay() {
    resetPosition = head
  }

  // MARK: - Releasing

  /// Whether to call ``raiseFloor()`` after a send.
  var isReleaseDue: Bool { head % Self.releaseInterval == 0 || allFollowersWait }

  /// Raises the floor to the first position that a subscriber or the replay still needs.
  ///
  /// - Complexity: O(*n*), where *n* is the number of cursor subscribers. O(1) if the replay needs every kept element,
  ///   if all cursor subscribers wait, or if the slowest one is unbounded and has not moved.
  /// - Returns: The number of oldest elements to release.
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

  /// The position of the first element that a cursor subscriber has left to read.
  func place(of cursor: Cursor) -> Int {
    max(cursor.position, head &- cursor.capacity)
  }
}
