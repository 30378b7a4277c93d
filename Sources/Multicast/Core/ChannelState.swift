/// A pure state machine of a channel: the range of kept elements, each subscriber's cursor, and the suspended calls.
///
/// The state contains no elements or locks, and its code uses no continuations. Every element has a position, counted
/// from the first element sent. The elements from ``floor`` up to ``head`` are kept, once, for all subscribers:
///
/// ```
///        floor            cursor of A      cursor of B     head
///          │                   │                │            │
///   ┄ gone ┼───────────────────┴────────────────┴────────────┤ the next element
///          │                              ├── replay of 4 ───┤
///          └ no subscriber needs an older element
/// ```
///
/// A **cursor subscriber** reads the kept elements and has no buffer, only a cursor. Its policy is arithmetic: with
/// capacity *k* it reads at `max(cursor, head - k)`, its *place*, and the elements between its cursor and its place are
/// dropped. A new cursor starts at the beginning of the replay. A **buffered subscriber** keeps the oldest elements of
/// its backlog, and with `replaceNewest` also the newest. It has a buffer of its own, because otherwise all later
/// elements would have to be kept, too. The state holds only the number of elements in that buffer.
///
/// Each input is a method that changes the state and returns the action, if any, for the caller to perform. The
/// action's type is declared above the method. The caller moves elements out of the channel under its lock, but
/// releases elements and resumes waiters only after it has unlocked. `Waiter` is the caller's type for a suspended call
/// of `next()`.
///
/// Invariants:
/// - A waiting subscriber has nothing to read: a cursor subscriber's cursor is at `head`, and a buffered subscriber's
///   buffer is empty.
/// - `floor` is at most the minimum of the start of the replay and the places of all cursor subscribers. After that
///   minimum has risen, `floor` follows within ``releaseInterval`` sends, and at once when all cursor subscribers wait.
/// - For each subscriber, the elements received, dropped and left to read add up to the elements replayed to it and
///   sent while it was receiving.
/// - `subscriberCount` is the number of subscribers that are receiving.
struct ChannelState<Waiter> {
  /// The maximum number of sends after which an element that is no longer needed is released.
  static var releaseInterval: Int { 16 }

  /// The position of the next element, which is the number of elements sent.
  private(set) var head = 0
  /// The position of the oldest kept element.
  private(set) var floor = 0
  /// Whether the channel has terminated.
  private(set) var hasTerminated = false
  /// The number of subscribers that are receiving.
  private(set) var subscriberCount = 0
  /// The ids of the cursor subscribers that have not ended.
  private(set) var cursorSubscribers: ContiguousArray<Int> = []
  /// The ids of the buffered subscribers that are receiving.
  private(set) var bufferedSubscribers: ContiguousArray<Int> = []

  private let replayLimit: Int
  /// The position before which no element is replayed, because the replay was reset there.
  private var resetPosition = 0
  /// The cursors, by subscriber id.
  private var cursors: ContiguousArray<Cursor> = []
  /// The rest of the subscribers' state, by subscriber id.
  private var subscribers: ContiguousArray<Subscriber> = []
  /// The ids that are free for new subscribers.
  private var unusedIDs: ContiguousArray<Int> = []
  /// The ids of the subscribers with a suspended call.
  private var waitingSubscribers: ContiguousArray<Int> = []
  /// The number of cursor subscribers with a suspended call.
  private var waitingCursorCount = 0
  /// The id of the cursor subscriber that `raiseFloor()` last found to keep the floor down.
  private var slowestCursorSubscriber = 0

  init(replayLimit: Int) {
    precondition(replayLimit >= 0, "'replay' must be at least 0, but is \(replayLimit).")
    self.replayLimit = replayLimit
  }

  // MARK: - Queries

  /// The position at which a new subscriber starts.
  var replayStart: Int { max(head - replayLimit, resetPosition) }

  /// Whether at least one subscriber would keep another element, rather than drop it or fail.
  var isElementUseful: Bool {
    !cursorSubscribers.isEmpty || bufferedSubscribers.contains { subscribers[$0].acceptsElement }
  }

  func isBuffered(_ id: Int) -> Bool { subscribers[id].buffer != nil }

  /// Whether a subscriber has something to read, including a completion or an error, or has ended.
  ///
  /// Also true if elements may be left in the batch of the ``ChannelSubscriber``, which must check the batch before it
  /// suspends.
  func isReadable(_ id: Int) -> Bool {
    if subscribers[id].phase != .receiving || subscribers[id].mayHaveBatch { return true }
    guard let buffer = subscribers[id].buffer else { return place(of: cursors[id]) < head }
    return buffer.count > 0
  }

  /// The position of the first element that a cursor subscriber has left to read.
  func place(of id: Int) -> Int { place(of: cursors[id]) }

  /// The number of elements that a subscriber was sent but will never receive.
  func droppedCount(_ id: Int) -> Int {
    let cursor = cursors[id]
    // The position is `.max` if the subscriber has no cursor, because it is buffered or has ended.
    return subscribers[id].droppedCount + (cursor.position == .max ? 0 : place(of: cursor) - cursor.position)
  }

  // MARK: - Sending

  /// The action to take for a buffered subscriber when an element is sent.
  enum OfferAction {
    /// Do nothing: the subscriber is suspended, and ``send()`` returns its waiter for the hand-off.
    case handOff
    /// Append the element to the subscriber's buffer.
    case append
    /// Replace the last element of the subscriber's buffer with the element.
    case replaceLast
    /// Do nothing: the element is dropped.
    ///
    /// If the policy is `error`, the subscriber accepts no further elements.
    case drop
  }

  /// Offers the next element to one of the ``bufferedSubscribers``.
  ///
  /// Before ``send()``, the caller must call this for each index of ``bufferedSubscribers``, from the last to the
  /// first. The order matters, because a subscriber that overflows is removed from ``bufferedSubscribers``.
  mutating func offer(at index: Int) -> OfferAction {
    let id = bufferedSubscribers[index]
    guard subscribers[id].firstWaiter == nil, let buffer = subscribers[id].buffer else { return .handOff }
    if buffer.count < buffer.capacity {
      subscribers[id].buffer!.count += 1
      return .append
    }
    subscribers[id].droppedCount += 1
    switch buffer.overflow {
    case .dropNewest: return .drop
    case .replaceNewest: return .replaceLast
    case .error:
      subscribers[id].buffer!.hasOverflowed = true
      subscribers[id].phase = .draining
      subscriberCount -= 1
      bufferedSubscribers.remove(at: index)
      return .drop
    }
  }

  /// The action to take for an element that was sent.
  ///
  /// The caller performs its parts in the order of the properties.
  struct SendAction {
    /// The number of oldest kept elements to release.
    var releaseCount: Int
    /// Whether to keep the element.
    var isKept: Bool
    /// The waiters to resume with the element.
    var resumptions: Resumptions
  }

  /// The waiters to resume with an element.
  ///
  /// The first two cases avoid an array when there is at most one waiter.
  enum Resumptions {
    case none
    case one(Waiter)
    case many(ContiguousArray<Waiter>)
  }

  /// Assigns the next position to an element, and takes the waiters for its hand-off.
  ///
  /// - Precondition: The channel has not terminated.
  @inline(__always)
  mutating func send() -> SendAction {
    let isKept = replayLimit > 0 || !allCursorSubscribersWait
    head += 1
    if !isKept { floor = head }
    let resumptions = waitingSubscribers.isEmpty ? .none : takeWaiters()
    let isReleaseDue = head % Self.releaseInterval == 0 || allCursorSubscribersWait
    return SendAction(releaseCount: isReleaseDue ? raiseFloor() : 0, isKept: isKept, resumptions: resumptions)
  }

  /// Takes one waiter of each waiting subscriber, for the hand-off of the element just sent.
  ///
  /// A cursor subscriber's cursor moves past that element.
  private mutating func takeWaiters() -> Resumptions {
    if waitingSubscribers.count == 1 {
      let id = waitingSubscribers[0]
      let waiter = subscribers[id].takeWaiter()
      if subscribers[id].usesCursor { cursors[id].position = head }
      if subscribers[id].firstWaiter == nil { removeFromWaiting(id) }
      return .one(waiter)
    }
    var waiters = ContiguousArray<Waiter>()
    waiters.reserveCapacity(waitingSubscribers.count)
    var stillWaitingCount = 0
    for id in waitingSubscribers {
      waiters.append(subscribers[id].takeWaiter())
      let usesCursor = subscribers[id].usesCursor
      if usesCursor { cursors[id].position = head }
      if subscribers[id].firstWaiter != nil {
        subscribers[id].waitingIndex = stillWaitingCount
        waitingSubscribers[stillWaitingCount] = id
        stillWaitingCount += 1
      } else if usesCursor {
        waitingCursorCount -= 1
      }
    }
    waitingSubscribers.removeLast(waitingSubscribers.count - stillWaitingCount)
    return .many(waiters)
  }

  /// The action to take when the channel is to terminate.
  enum FinishAction {
    /// Do nothing: the channel had already terminated.
    case none
    /// Record the termination, and resume the waiters, which then find it.
    case terminate(resuming: ContiguousArray<Waiter>)
  }

  /// Terminates the channel, unless it has already terminated.
  mutating func finish() -> FinishAction {
    if hasTerminated { return .none }
    hasTerminated = true
    subscriberCount = 0
    for id in bufferedSubscribers { subscribers[id].phase = .draining }
    for id in cursorSubscribers { subscribers[id].phase = .draining }
    bufferedSubscribers.removeAll()
    var waiters = ContiguousArray<Waiter>()
    for index in waitingSubscribers.indices.reversed() {
      takeAllWaiters(of: waitingSubscribers[index], into: &waiters)
    }
    return .terminate(resuming: waiters)
  }

  /// The action to take when the replay was reset.
  struct ResetReplayAction {
    /// The number of oldest kept elements to release.
    var releaseCount: Int
  }

  /// Empties the replay without changing the subscribers' backlogs.
  mutating func resetReplay() -> ResetReplayAction {
    resetPosition = head
    return ResetReplayAction(releaseCount: raiseFloor())
  }

  // MARK: - Reading

  /// The action to take for a new subscriber.
  enum SubscribeAction {
    /// Do nothing: the subscriber reads the kept elements.
    case readKept(id: Int)
    /// Create the subscriber's buffer, and copy the kept elements at the given positions into it.
    case createBuffer(id: Int, replay: Range<Int>)
  }

  /// Registers a subscriber together with its replay, in one step.
  ///
  /// A cursor subscriber starts at the beginning of the replay. A buffered subscriber's element count includes the
  /// replay, which the caller must copy into the subscriber's buffer in the same critical section.
  ///
  /// - Parameters:
  ///   - capacity: The maximum number of buffered elements. The replay's limit applies instead if it is larger.
  ///   - overflow: The overflow behavior of a buffered subscriber, or `nil` for a cursor subscriber.
  @inline(__always)
  mutating func subscribe(capacity: Int, overflow: OverflowBehavior?) -> SubscribeAction {
    let capacity = max(capacity, replayLimit)
    var subscriber = Subscriber()
    var cursor = Cursor.none
    if let overflow {
      subscriber.buffer = BufferState(capacity: capacity, overflow: overflow, count: head - replayStart)
    } else {
      cursor = Cursor(position: replayStart, capacity: capacity)
      subscriber.cursorIndex = cursorSubscribers.count
    }
    if hasTerminated {
      subscriber.phase = .draining
    } else {
      subscriberCount += 1
    }
    let id = register(subscriber, cursor)
    if overflow == nil {
      cursorSubscribers.append(id)
      return .readKept(id: id)
    }
    if !hasTerminated { bufferedSubscribers.append(id) }
    return .createBuffer(id: id, replay: replayStart..<head)
  }

  /// Stores a new subscriber, and returns its id.
  private mutating func register(_ subscriber: Subscriber, _ cursor: Cursor) -> Int {
    if let id = unusedIDs.popLast() {
      subscribers[id] = subscriber
      cursors[id] = cursor
      return id
    }
    subscribers.append(subscriber)
    cursors.append(cursor)
    return subscribers.count - 1
  }

  /// The action to take for a subscriber that reads.
  enum ReadAction {
    /// Copy `count` kept elements, starting at the given position.
    case copy(from: Int, count: Int)
    /// Move the `count` oldest kept elements to the subscriber, because neither another subscriber nor the replay needs
    /// them.
    case take(count: Int)
    /// Take the first element of the subscriber's buffer.
    case takeBuffered
    /// Deliver the channel's completion or failure, and release `releaseCount` of the oldest kept elements.
    ///
    /// A subscriber's reads return this only once.
    case terminate(releaseCount: Int)
    /// Deliver the error of the subscriber's overflow.
    ///
    /// A subscriber's reads return this only once.
    case overflow(capacity: Int)
    /// Return `nil`: the subscriber has ended.
    case returnNil
    /// Suspend: no element is available yet.
    case suspend
  }

  /// Advances a subscriber past its next elements.
  ///
  /// - Parameter limit: The maximum number of elements to read.
  mutating func read(_ id: Int, limit: Int) -> ReadAction {
    if subscribers[id].phase == .ended { return .returnNil }
    if let buffer = subscribers[id].buffer {
      if buffer.count > 0 {
        subscribers[id].buffer!.count -= 1
        return .takeBuffered
      }
      guard subscribers[id].phase == .draining else { return .suspend }
      subscribers[id].phase = .ended
      return buffer.hasOverflowed ? .overflow(capacity: buffer.capacity) : .terminate(releaseCount: 0)
    }
    let position = place(of: cursors[id])
    subscribers[id].droppedCount += position - cursors[id].position
    let count = min(limit, head - position)
    cursors[id].position = position + count
    subscribers[id].mayHaveBatch = count > 1
    if count > 0 {
      // Elements that only this cursor subscriber needs are moved rather than copied.
      guard cursorSubscribers.count == 1, position == floor, floor + count <= replayStart else {
        return .copy(from: position, count: count)
      }
      floor += count
      return .take(count: count)
    }
    guard subscribers[id].phase == .draining else { return .suspend }
    subscribers[id].phase = .ended
    removeCursor(of: id)
    // The subscriber needs no more elements, even if it stays alive.
    return .terminate(releaseCount: raiseFloor())
  }

  /// The action to take for a call that is about to suspend.
  enum ParkAction {
    /// Resume the waiter at once: the subscriber has something to read.
    case resume
    /// Leave the call suspended, and release `releaseCount` of the oldest kept elements.
    case suspend(releaseCount: Int)
  }

  /// Stores a suspended call, unless the subscriber has something to read.
  @inline(__always)
  mutating func park(_ id: Int, _ waiter: Waiter) -> ParkAction {
    if isReadable(id) { return .resume }
    guard subscribers[id].firstWaiter == nil else {
      subscribers[id].otherWaiters.append(waiter)
      return .suspend(releaseCount: 0)
    }
    subscribers[id].firstWaiter = waiter
    subscribers[id].waitingIndex = waitingSubscribers.count
    waitingSubscribers.append(id)
    if subscribers[id].usesCursor { waitingCursorCount += 1 }
    return .suspend(releaseCount: allCursorSubscribersWait && floor < replayStart ? raiseFloor() : 0)
  }

  /// The action to take for a subscriber that is cancelled.
  enum CancelAction {
    /// Do nothing: the subscriber had already ended.
    case none
    /// Release `releaseCount` of the oldest kept elements, and resume the waiters, which then return `nil`.
    case release(releaseCount: Int, resuming: ContiguousArray<Waiter>)
    /// Empty the subscriber's buffer, and resume the waiters, which then return `nil`.
    case emptyBuffer(resuming: ContiguousArray<Waiter>)
  }

  /// Ends a subscriber at once, and counts its backlog as dropped.
  @inline(__always)
  mutating func cancel(_ id: Int) -> CancelAction {
    guard subscribers[id].phase != .ended else { return .none }
    let wasReceiving = subscribers[id].phase == .receiving
    subscribers[id].phase = .ended
    if wasReceiving { subscriberCount -= 1 }
    var waiters = ContiguousArray<Waiter>()
    takeAllWaiters(of: id, into: &waiters)
    if let buffer = subscribers[id].buffer {
      subscribers[id].droppedCount += buffer.count
      subscribers[id].buffer!.count = 0
      if wasReceiving { bufferedSubscribers.removeAll { $0 == id } }
      return .emptyBuffer(resuming: waiters)
    }
    subscribers[id].droppedCount += head - cursors[id].position
    removeCursor(of: id)
    return .release(releaseCount: raiseFloor(), resuming: waiters)
  }

  /// Frees the id of a subscriber whose `next()` can't be called again.
  ///
  /// - Precondition: The subscriber has been cancelled.
  mutating func remove(_ id: Int) {
    unusedIDs.append(id)
  }

  /// Counts elements of a batch that a cancelled subscriber discarded.
  mutating func countDropped(_ id: Int, _ count: Int) {
    subscribers[id].droppedCount += count
  }

  // MARK: - Cursors

  /// A cursor subscriber's cursor and capacity.
  ///
  /// They are stored apart from the rest of the subscriber, so that a scan of all cursors touches few cache lines.
  private struct Cursor {
    /// The placeholder for a subscriber without a cursor, which is buffered or has ended.
    static var none: Cursor { Cursor(position: .max, capacity: .max) }

    var position: Int
    let capacity: Int
  }

  private var allCursorSubscribersWait: Bool { waitingCursorCount == cursorSubscribers.count }

  private func place(of cursor: Cursor) -> Int {
    max(cursor.position, head &- cursor.capacity)
  }

  /// Raises the floor to the first position that a subscriber or the replay still needs.
  ///
  /// - Complexity: O(*n*), where *n* is the number of cursor subscribers. O(1) if the replay needs every kept element,
  ///   if all cursor subscribers wait, or if the slowest one is unbounded and its cursor is still at the floor.
  /// - Returns: The number of oldest elements to release.
  private mutating func raiseFloor() -> Int {
    var firstNeeded = replayStart
    if firstNeeded == floor { return 0 }
    if !allCursorSubscribersWait {
      let slowest = cursors[slowestCursorSubscriber]
      if slowest.capacity == .max, slowest.position == floor { return 0 }
      for id in cursorSubscribers {
        let place = place(of: cursors[id])
        if place < firstNeeded {
          firstNeeded = place
          slowestCursorSubscriber = id
        }
      }
    }
    defer { floor = firstNeeded }
    return firstNeeded - floor
  }

  private mutating func removeCursor(of id: Int) {
    cursors[id] = .none
    let index = subscribers[id].cursorIndex
    let last = cursorSubscribers.removeLast()
    if last != id {
      cursorSubscribers[index] = last
      subscribers[last].cursorIndex = index
    }
  }

  // MARK: - Waiters

  /// Takes all waiters of a subscriber.
  private mutating func takeAllWaiters(of id: Int, into waiters: inout ContiguousArray<Waiter>) {
    guard let first = subscribers[id].firstWaiter.take() else { return }
    waiters.append(first)
    waiters.append(contentsOf: subscribers[id].otherWaiters)
    subscribers[id].otherWaiters.removeAll()
    removeFromWaiting(id)
  }

  private mutating func removeFromWaiting(_ id: Int) {
    let index = subscribers[id].waitingIndex
    let last = waitingSubscribers.removeLast()
    if last != id {
      waitingSubscribers[index] = last
      subscribers[last].waitingIndex = index
    }
    if subscribers[id].usesCursor { waitingCursorCount -= 1 }
  }

  // MARK: - Subscribers

  /// The state of one subscriber, apart from its cursor.
  private struct Subscriber {
    enum Phase {
      /// The subscriber accepts elements.
      case receiving
      /// The subscriber accepts no further elements, but has yet to deliver its backlog or its completion or error.
      ///
      /// Either the channel has terminated, or the subscriber's buffer has overflowed.
      case draining
      /// The subscriber has delivered its completion or error, or was cancelled.
      ///
      /// Every further read returns `nil`.
      case ended
    }

    var phase = Phase.receiving
    /// The buffer of a buffered subscriber, or `nil` for a cursor subscriber.
    var buffer: BufferState?
    /// The suspended call that is served next.
    var firstWaiter: Waiter?
    /// The suspended calls served after the first one.
    ///
    /// There are some only if several tasks share the subscription.
    var otherWaiters = ContiguousArray<Waiter>()
    /// The subscriber's index in `waitingSubscribers`, if it waits.
    var waitingIndex = 0
    /// A cursor subscriber's index in `cursorSubscribers`, unless it has ended.
    var cursorIndex = 0
    /// Whether the last read took more than one element, so that elements may be left in the subscriber's batch.
    ///
    /// If so, a concurrent call of the same subscriber must check the batch before it suspends.
    var mayHaveBatch = false
    var droppedCount = 0

    var usesCursor: Bool { buffer == nil }

    /// Whether another element would be handed off or kept, rather than be dropped or fail the subscriber.
    var acceptsElement: Bool {
      guard firstWaiter == nil, let buffer else { return true }
      return buffer.count < buffer.capacity || buffer.overflow == .replaceNewest
    }

    /// Takes the waiter that is served next, which must exist.
    mutating func takeWaiter() -> Waiter {
      let waiter = firstWaiter.take()!
      if !otherWaiters.isEmpty { firstWaiter = otherWaiters.removeFirst() }
      return waiter
    }
  }

  /// The state of a buffered subscriber's buffer, without its elements.
  private struct BufferState {
    let capacity: Int
    let overflow: OverflowBehavior
    var count: Int
    var hasOverflowed = false
  }
}

/// The behavior of a buffered subscriber when an element arrives while its buffer is full.
enum OverflowBehavior {
  case dropNewest
  case replaceNewest
  case error
}
