// MARK: - Reading

extension ChannelState {
  /// Registers a subscriber together with its replay, in one step.
  ///
  /// A cursor subscriber starts at the beginning of the replay. A buffered subscriber's count includes the replay,
  /// which the caller copies into the subscriber's buffer in the same critical section.
  ///
  /// - Parameters:
  ///   - capacity: The maximum number of buffered elements. The replay's limit applies instead if it is larger.
  ///   - overflow: The overflow behaviour of a buffered subscriber, or `nil` for a cursor subscriber.
  /// - Returns: The subscriber's id.
  mutating func subscribe(capacity: Int, overflow: CollectionOverflow?) -> Int {
    let capacity = max(capacity, replayLimit)
    var reader = ReaderState<Waiter>()
    var cursor = Cursor.none
    if let overflow {
      reader.collection = BufferState(capacity: capacity, overflow: overflow, count: head - replayStart)
    } else {
      cursor = Cursor(position: replayStart, capacity: capacity)
      reader.indexInFollowers = followers.count
    }
    if hasEnded {
      reader.intake = .closed
    } else {
      subscriberCount += 1
    }
    let id: Int
    if let unused = unusedReaders.popLast() {
      id = unused
      readers[id] = reader
      cursors[id] = cursor
    } else {
      id = readers.count
      readers.append(reader)
      cursors.append(cursor)
    }
    if overflow == nil { followers.append(id) } else if !hasEnded { collectors.append(id) }
    return id
  }

  /// The action to take for a subscriber that reads.
  enum ReadAction {
    /// Copy `count` kept elements, starting at the given position.
    case copy(from: Int, count: Int)
    /// Move the `count` oldest kept elements to the subscriber, because neither another subscriber nor the replay needs
    /// them.
    case take(count: Int)
    /// Take the first element of the subscriber's buffer.
    case takeCollected
    /// Deliver the channel's completion or failure. Returned once.
    case end
    /// Deliver the error of the subscriber's overflow. Returned once.
    case overflow(capacity: Int)
    /// Return `nil`: the subscriber has ended.
    case nothing
    /// Suspend: no element is available yet.
    case wait
  }

  /// Advances a subscriber past its next elements.
  ///
  /// - Parameter limit: The maximum number of elements to read.
  mutating func read(_ id: Int, limit: Int) -> ReadAction {
    if readers[id].intake == .ended { return .nothing }
    if let collection = readers[id].collection {
      if collection.count > 0 {
        readers[id].collection!.count -= 1
        return .takeCollected
      }
      guard readers[id].intake == .closed else { return .wait }
      readers[id].intake = .ended
      return collection.hasOverflowed ? .overflow(capacity: collection.capacity) : .end
    }
    let position = place(of: cursors[id])
    readers[id].droppedCount += position - cursors[id].position
    let count = min(limit, head - position)
    cursors[id].position = position + count
    readers[id].hasBatch = count > 1
    if count > 0 {
      // Elements that only this cursor subscriber needs are moved rather than copied.
      guard followers.count == 1, position == floor, floor + count <= replayStart else {
        return .copy(from: position, count: count)
      }
      floor += count
      return .take(count: count)
    }
    guard readers[id].intake == .closed else { return .wait }
    readers[id].intake = .ended
    stopFollowing(id)
    return .end
  }

  /// Whether ``read(_:limit:)`` would return another action than `wait`, or an element may be left in a batch.
  func isReadable(_ id: Int) -> Bool {
    readers[id].isReadable(at: place(of: cursors[id]), head: head)
  }

  /// Stores a suspended call until the subscriber has something to read.
  ///
  /// - Precondition: ``isReadable(_:)`` is false.
  mutating func park(_ id: Int, _ waiter: Waiter) {
    let (isFirst, isFollower) = readers[id].park(waiter, index: waitingReaders.count)
    guard isFirst else { return }
    waitingReaders.append(id)
    if isFollower { waitingFollowerCount += 1 }
  }

  /// Whether to call ``raiseFloor()`` after a subscriber was parked.
  var isReleaseDueAfterParking: Bool { allFollowersWait && floor < replayStart }

  /// Ends a subscriber at once, and counts its backlog as dropped.
  ///
  /// - Returns: The waiters to resume, which then return `nil`, or `nil` if the subscriber had already ended.
  mutating func cancel(_ id: Int) -> ContiguousArray<Waiter>? {
    guard readers[id].intake != .ended else { return nil }
    let wasOpen = readers[id].intake == .open
    readers[id].intake = .ended
    if wasOpen { subscriberCount -= 1 }
    var waiters = ContiguousArray<Waiter>()
    takeAllWaiters(of: id, into: &waiters)
    if let collection = readers[id].collection {
      readers[id].droppedCount += collection.count
      readers[id].collection!.count = 0
      if wasOpen { collectors.removeAll { $0 == id } }
    } else {
      readers[id].droppedCount += head - cursors[id].position
      stopFollowing(id)
    }
    return waiters
  }

  func isCollector(_ id: Int) -> Bool { readers[id].collection != nil }

  /// Frees the id of a subscriber whose `next()` cannot be called again.
  ///
  /// - Precondition: The subscriber has been cancelled.
  mutating func remove(_ id: Int) {
    unusedReaders.append(id)
  }

  /// The number of elements sent to a subscriber that it will never receive.
  func droppedCount(_ id: Int) -> Int {
    let cursor = cursors[id]
    return readers[id].droppedCount + (cursor.position == .max ? 0 : place(of: cursor) - cursor.position)
  }

  /// Counts elements of a batch that a cancelled subscriber discarded.
  mutating func countDropped(_ id: Int, _ count: Int) {
    readers[id].droppedCount += count
  }

  mutating func stopFollowing(_ id: Int) {
    cursors[id] = .none
    let index = readers[id].indexInFollowers
    let last = followers.removeLast()
    if last != id {
      followers[index] = last
      readers[last].indexInFollowers = index
    }
  }

  mutating func removeFromWaiting(_ id: Int, isFollower: Bool) {
    let index = readers[id].indexInWaitingReaders
    let last = waitingReaders.removeLast()
    if last != id {
      waitingReaders[index] = last
      readers[last].indexInWaitingReaders = index
    }
    if isFollower { waitingFollowerCount -= 1 }
  }
}
