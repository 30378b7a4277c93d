@testable import Multicast

/// A ``ChannelState`` whose actions are performed on arrays of elements, as `ChannelContents` performs them on rings.
///
/// It is a value type, so that a test can continue from one state in several ways.
struct StateDriver {
  private(set) var state: ChannelState<Call>
  /// The elements from `state.floor` up to `state.head`.
  private(set) var kept: [Int] = []
  private var buffersByID: [[Int]] = []
  private var idsBySlot: [Int?] = []
  private var hasFailed = false

  init(replayLimit: Int) {
    state = ChannelState(replayLimit: replayLimit)
  }

  func droppedCount(_ slot: Int) -> Int { state.droppedCount(idsBySlot[slot]!) }
  func isReadable(_ slot: Int) -> Bool { state.isReadable(idsBySlot[slot]!) }
  var latest: Int? { state.replayStart < state.head ? kept.last : nil }

  /// Returns the elements that a subscriber has left to read.
  func backlog(_ slot: Int) -> [Int] {
    let id = idsBySlot[slot]!
    if state.isBuffered(id) { return buffersByID[id] }
    let position = state.place(of: id)
    return position < state.head ? Array(kept[(position - state.floor)...]) : []
  }

  /// Applies an event.
  ///
  /// - Parameter callNumber: The number of the call that a `next` event makes.
  /// - Returns: The answers to the calls that the event completes.
  mutating func apply(_ event: ChannelEvent, callNumber: Int) -> [Answer] {
    switch event {
    case .send: return send()
    case .subscribe(let policy):
      subscribe(policy)
      return []
    case .next(let slot):
      let call = Call(number: callNumber, slot: slot)
      if let answer = read(call) { return [answer] }
      switch state.park(idsBySlot[slot]!, call) {
      case .resume: return [read(call)!]
      case .suspend(let releaseCount):
        kept.removeFirst(releaseCount)
        return []
      }
    case .cancel(let slot): return cancel(slot)
    case .releaseSubscriber(let slot):
      let answers = cancel(slot)
      state.remove(idsBySlot[slot]!)
      idsBySlot[slot] = nil
      return answers
    case .finish: return finish()
    case .fail:
      if !state.hasTerminated { hasFailed = true }
      return finish()
    case .resetReplay:
      kept.removeFirst(state.resetReplay().releaseCount)
      return []
    }
  }

  private mutating func send() -> [Answer] {
    if state.hasTerminated { return [] }
    let element = state.head
    // From the last to the first, because an offer may remove its subscriber from the array.
    for index in state.bufferedSubscribers.indices.reversed() {
      let id = state.bufferedSubscribers[index]
      switch state.offer(at: index) {
      case .handOff, .drop: break
      case .append: buffersByID[id].append(element)
      case .replaceLast: buffersByID[id][buffersByID[id].count - 1] = element
      }
    }
    let action = state.send()
    kept.removeFirst(action.releaseCount)
    if action.isKept { kept.append(element) }
    switch action.resumptions {
    case .none: return []
    case .one(let call): return [Answer(call: call, outcome: .element(element))]
    case .many(let calls): return calls.map { Answer(call: $0, outcome: .element(element)) }
    }
  }

  private mutating func subscribe(_ policy: ModelPolicy) {
    let overflow: OverflowBehavior? =
      switch policy {
      case .unbounded, .dropOldest: nil
      case .dropNewest: .dropNewest
      case .replaceNewest: .replaceNewest
      case .error: .error
      }
    let id: Int
    switch state.subscribe(capacity: policy.capacity, overflow: overflow) {
    case .readKept(let newID):
      id = newID
      setBuffer(of: id, to: [])
    case .createBuffer(let newID, let replay):
      id = newID
      setBuffer(of: id, to: replay.map { kept[$0 - state.floor] })
    }
    if let slot = idsBySlot.firstIndex(of: nil) {
      idsBySlot[slot] = id
    } else {
      idsBySlot.append(id)
    }
  }

  private mutating func setBuffer(of id: Int, to elements: [Int]) {
    if id == buffersByID.count { buffersByID.append([]) }
    buffersByID[id] = elements
  }

  private mutating func read(_ call: Call) -> Answer? {
    let id = idsBySlot[call.slot]!
    switch state.read(id, limit: 1) {
    case .copy(let position, _): return Answer(call: call, outcome: .element(kept[position - state.floor]))
    case .take: return Answer(call: call, outcome: .element(kept.removeFirst()))
    case .takeBuffered: return Answer(call: call, outcome: .element(buffersByID[id].removeFirst()))
    case .terminate(let releaseCount):
      kept.removeFirst(releaseCount)
      return Answer(call: call, outcome: hasFailed ? .failure(.channelFailed) : .end)
    case .overflow(let capacity): return Answer(call: call, outcome: .failure(.overflow(capacity: capacity)))
    case .returnNil: return Answer(call: call, outcome: .end)
    case .suspend: return nil
    }
  }

  private mutating func cancel(_ slot: Int) -> [Answer] {
    let id = idsBySlot[slot]!
    switch state.cancel(id) {
    case .none: return []
    case .release(let releaseCount, let calls):
      kept.removeFirst(releaseCount)
      return calls.map { read($0)! }
    case .emptyBuffer(let calls):
      buffersByID[id] = []
      return calls.map { read($0)! }
    }
  }

  private mutating func finish() -> [Answer] {
    switch state.finish() {
    case .none: []
    case .terminate(let calls): calls.map { read($0)! }
    }
  }
}
