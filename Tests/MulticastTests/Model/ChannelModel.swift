/// A naive model of a channel, in which each subscriber has an array of its own.
///
/// Policies are applied when an element is sent, the replay is copied when a subscriber registers, and suspended calls
/// form a queue. Each element is the number of elements sent before it, so it equals its position. The tests compare
/// the channel's implementation with this model.
struct ChannelModel {
  enum Termination {
    case finished
    case failed
  }

  let replayLimit: Int
  private(set) var sentCount = 0
  private(set) var replay: [Int] = []
  private(set) var termination: Termination?
  /// The subscribers by slot, or `nil` for an unoccupied slot.
  private(set) var subscribers: [Subscriber?] = []

  init(replayLimit: Int) {
    self.replayLimit = replayLimit
  }

  var subscriberCount: Int { subscribers.count { $0?.isOpen == true } }
  var latest: Int? { replay.last }
  /// The slot of the next subscriber.
  var nextSlot: Int { subscribers.firstIndex { $0 == nil } ?? subscribers.count }

  /// The first position that the replay or a cursor subscriber needs.
  var oldestNeeded: Int {
    var oldest = replay.first ?? sentCount
    for case let subscriber? in subscribers where subscriber.policy.usesCursor {
      oldest = min(oldest, subscriber.backlog.first ?? sentCount)
    }
    return oldest
  }

  /// Whether every cursor subscriber that has not ended is suspended.
  var allCursorSubscribersWait: Bool {
    subscribers.allSatisfy { subscriber in
      guard let subscriber, subscriber.policy.usesCursor, !subscriber.hasEnded else { return true }
      return !subscriber.waiters.isEmpty
    }
  }

  /// Applies an event.
  ///
  /// - Parameter callNumber: The number of the call that a `next` event makes.
  /// - Returns: The answers to the calls that the event completes.
  mutating func apply(_ event: ChannelEvent, callNumber: Int) -> [Answer] {
    switch event {
    case .send: send()
    case .subscribe(let policy): subscribe(policy)
    case .next(let slot):
      subscribers[slot]!.next(Call(number: callNumber, slot: slot), termination: termination).map { [$0] } ?? []
    case .cancel(let slot): subscribers[slot]!.cancel()
    case .releaseSubscriber(let slot): releaseSubscriber(slot)
    case .finish: finish(.finished)
    case .fail: finish(.failed)
    case .resetReplay: resetReplay()
    }
  }

  private mutating func send() -> [Answer] {
    guard termination == nil else { return [] }
    let element = sentCount
    sentCount += 1
    replay.append(element)
    if replay.count > replayLimit { replay.removeFirst() }
    return subscribers.indices.compactMap { subscribers[$0]?.offer(element) }
  }

  private mutating func subscribe(_ policy: ModelPolicy) -> [Answer] {
    let subscriber = Subscriber(policy, replay: replay, replayLimit: replayLimit, isOpen: termination == nil)
    let slot = nextSlot
    if slot == subscribers.count { subscribers.append(nil) }
    subscribers[slot] = subscriber
    return []
  }

  private mutating func releaseSubscriber(_ slot: Int) -> [Answer] {
    subscribers[slot] = nil
    return []
  }

  private mutating func finish(_ termination: Termination) -> [Answer] {
    guard self.termination == nil else { return [] }
    self.termination = termination
    return subscribers.indices.flatMap { subscribers[$0]?.close(termination) ?? [] }
  }

  private mutating func resetReplay() -> [Answer] {
    replay = []
    return []
  }
}

extension ChannelModel {
  struct Subscriber {
    let policy: ModelPolicy
    let capacity: Int
    private(set) var backlog: [Int]
    private(set) var waiters: [Call] = []
    private(set) var isOpen: Bool
    private(set) var hasOverflowed = false
    private(set) var hasEnded = false
    private(set) var droppedCount = 0
    /// The number of elements replayed to the subscriber, and sent while it was open.
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
      if !waiters.isEmpty { return Answer(call: waiters.removeFirst(), outcome: .element(element)) }
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

    mutating func next(_ call: Call, termination: Termination?) -> Answer? {
      if hasEnded { return Answer(call: call, outcome: .end) }
      if !backlog.isEmpty { return Answer(call: call, outcome: .element(backlog.removeFirst())) }
      if isOpen {
        waiters.append(call)
        return nil
      }
      hasEnded = true
      if hasOverflowed { return Answer(call: call, outcome: .failure(.overflow(capacity: capacity))) }
      return Answer(call: call, outcome: termination == .failed ? .failure(.channelFailed) : .end)
    }

    mutating func close(_ termination: Termination) -> [Answer] {
      isOpen = false
      let calls = waiters
      waiters = []
      return calls.map { next($0, termination: termination)! }
    }

    mutating func cancel() -> [Answer] {
      hasEnded = true
      isOpen = false
      droppedCount += backlog.count
      backlog = []
      let calls = waiters
      waiters = []
      return calls.map { Answer(call: $0, outcome: .end) }
    }
  }
}
