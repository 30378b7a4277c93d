// MARK: - Reading

extension ChannelState {
  /// Registers a subscriber and gives it the replay, in one step.
  ///
  /// - Parameters:
  ///   - capacity: How many elements wait at most.
  ///   - overflow: What a buffered subscriber does without a place for an element; nil for a cursor subscriber.
  mutating func subscribe(capacity: Int, overflow: CollectionOverflow?) -> Int {
    let capacity = max(capacity, replayLimit)
    var reader = ReaderState<Waiter>()
    var cursor = Cursor.none
    if let overflow {
      reader.collection = Collection(capacity: capacity, overflow: overflow, count: head - replayStart)
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

  enum ReadAction {
    /// Copy `count` kept elements from this position on.
    case copy(from: Int, count: Int)
    /// Take the `count` oldest kept elements, which no other subscriber needs.
    case take(count: Int)
    /// Take the first element of the buffered subscriber's buffer.
    case takeCollected
    /// The channel's end, delivered now and not again.
    case end
    /// The end after the buffered subscriber's overflow, delivered now and not again.
    case overflow(capacity: Int)
    /// Nil, for ever.
    case nothing
    /// There is nothing yet.
    case wait
  }

  /// The next thing for a subscriber.
  ///
  /// - Parameter limit: How many elements the caller takes at most.
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
      // A sole cursor subscriber need not share what is not replayed.
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

  /// Whether ``read(_:limit:)`` would say anything but `wait`.
  func isReadable(_ id: Int) -> Bool {
    readers[id].isReadable(at: place(of: cursors[id]), head: head)
  }

  /// Keeps a suspended call until there is something for it.
  ///
  /// Nothing may be readable.
  mutating func park(_ id: Int, _ waiter: Waiter) {
    let (isFirst, isFollower) = readers[id].park(waiter, index: waitingReaders.count)
    guard isFirst else { return }
    waitingReaders.append(id)
    if isFollower { waitingFollowerCount += 1 }
  }

  /// Whether a subscriber that waits may have made elements unnecessary.
  var isReleaseDueAfterParking: Bool { allFollowersWait && floor < replayStart }

  /// Ends a subscriber at once.
  ///
  /// Its backlog counts as dropped.
  ///
  /// - Returns: Who is to be resumed, to find the end; nil when the subscriber had ended.
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

  /// Forgets a subscriber of which no call of `next()` can follow.
  ///
  /// It must have been cancelled.
  mutating func remove(_ id: Int) {
    unusedReaders.append(id)
  }

  /// How many elements a subscriber will never get, of those that were meant for it.
  func droppedCount(_ id: Int) -> Int {
    let cursor = cursors[id]
    return readers[id].droppedCount + (cursor.position == .max ? 0 : place(of: cursor) - cursor.position)
  }

  /// Counts elements that a subscriber had taken and gave up when it was cancelled.
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
