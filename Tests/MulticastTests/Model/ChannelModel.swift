/// What a channel promises, in the most obvious way: each reader has an array of its own.
///
/// A policy is applied when an element is sent, the replay is copied when a reader subscribes, and waiting calls stand
/// in line. Everything else is compared with this.
struct ChannelModel {
  enum End {
    case finished
    case failed
  }

  let replayLimit: Int
  private(set) var sentCount = 0
  private(set) var replay: [Int] = []
  private(set) var end: End?
  /// By slot; nil where no reader is.
  private(set) var readers: [Reader?] = []

  init(replayLimit: Int) {
    self.replayLimit = replayLimit
  }

  var subscriberCount: Int { readers.count { $0?.isOpen == true } }
  var latest: Int? { replay.last }
  /// Where the next reader will be.
  var nextSlot: Int { readers.firstIndex { $0 == nil } ?? readers.count }

  /// The first position that the replay or a reader without a buffer of its own needs.
  var oldestNeeded: Int {
    var oldest = replay.first ?? sentCount
    for case let reader? in readers where reader.policy.isFollower {
      oldest = min(oldest, reader.backlog.first ?? sentCount)
    }
    return oldest
  }

  /// Whether every reader without a buffer of its own waits, if there is one.
  var allFollowersWait: Bool {
    readers.allSatisfy { reader in
      guard let reader, reader.policy.isFollower, !reader.isDone else { return true }
      return !reader.waiters.isEmpty
    }
  }

  /// Makes an event happen.
  ///
  /// - Parameter call: What a `next` is named.
  /// - Returns: The calls that are answered by it.
  mutating func apply(_ event: ChannelEvent, call: Int) -> [Answer] {
    switch event {
    case .send: send()
    case .subscribe(let policy): subscribe(policy)
    case .next(let slot): readers[slot]!.next(Call(number: call, slot: slot), end: end).map { [$0] } ?? []
    case .cancel(let slot): readers[slot]!.cancel()
    case .drop(let slot): drop(slot)
    case .finish: finish(.finished)
    case .fail: finish(.failed)
    case .resetReplay: resetReplay()
    }
  }

  private mutating func send() -> [Answer] {
    guard end == nil else { return [] }
    let element = sentCount
    sentCount += 1
    replay.append(element)
    if replay.count > replayLimit { replay.removeFirst() }
    return readers.indices.compactMap { readers[$0]?.offer(element) }
  }

  private mutating func subscribe(_ policy: ModelPolicy) -> [Answer] {
    let reader = Reader(policy, replay: replay, replayLimit: replayLimit, isOpen: end == nil)
    let slot = nextSlot
    if slot == readers.count { readers.append(nil) }
    readers[slot] = reader
    return []
  }

  private mutating func drop(_ slot: Int) -> [Answer] {
    readers[slot] = nil
    return []
  }

  private mutating func finish(_ end: End) -> [Answer] {
    guard self.end == nil else { return [] }
    self.end = end
    return readers.indices.flatMap { readers[$0]?.close(end) ?? [] }
  }

  private mutating func resetReplay() -> [Answer] {
    replay = []
    return []
  }
}

extension ChannelModel {
  struct Reader {
    let policy: ModelPolicy
    let capacity: Int
    private(set) var backlog: [Int]
    private(set) var waiters: [Call] = []
    private(set) var isOpen: Bool
    private(set) var hasOverflowed = false
    private(set) var isDone = false
    private(set) var receivedCount = 0
    private(set) var droppedCount = 0
    /// How many were replayed to it, and sent while it was open.
    private(set) var offeredCount: Int

    init(_ policy: ModelPolicy, replay: [Int], replayLimit: Int, isOpen: Bool) {
      self.policy = policy
      capacity = max(policy.capacity, replayLimit)
      backlog = replay
      offeredCount = replay.count
      self.isOpen = isOpen
    }

    /// Whether a call of `next()` would return at once.
    var isReadable: Bool { !backlog.isEmpty || !isOpen }

    mutating func offer(_ element: Int) -> Answer? {
      guard isOpen else { return nil }
      offeredCount += 1
      if !waiters.isEmpty {
        receivedCount += 1
        return Answer(call: waiters.removeFirst(), outcome: .element(element))
      }
      if backlog.count < capacity {
        backlog.append(element)
        return nil
      }
      droppedCount += 1
      switch policy {
      case .unbounded, .dropOldest: backlog = backlog.dropFirst() + [element]
      case .dropNewest: break
      case .replaceNewest: backlog = backlog.dropLast() + [element]
      case .error:
        hasOverflowed = true
        isOpen = false
      }
      return nil
    }

    mutating func next(_ call: Call, end: End?) -> Answer? {
      if isDone { return Answer(call: call, outcome: .end) }
      if !backlog.isEmpty {
        receivedCount += 1
        return Answer(call: call, outcome: .element(backlog.removeFirst()))
      }
      if isOpen {
        waiters.append(call)
        return nil
      }
      isDone = true
      if hasOverflowed { return Answer(call: call, outcome: .failure(.overflow(capacity: capacity))) }
      return Answer(call: call, outcome: end == .failed ? .failure(.channel) : .end)
    }

    mutating func close(_ end: End) -> [Answer] {
      isOpen = false
      let calls = waiters
      waiters = []
      return calls.map { next($0, end: end)! }
    }

    mutating func cancel() -> [Answer] {
      isDone = true
      isOpen = false
      droppedCount += backlog.count
      backlog = []
      let calls = waiters
      waiters = []
      return calls.map { Answer(call: $0, outcome: .end) }
    }
  }
}
