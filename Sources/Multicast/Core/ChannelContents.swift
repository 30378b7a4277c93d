/// What a channel's lock guards: the positions, and the elements at those positions.
///
/// Does with elements what ``ChannelState`` says. Nothing here resumes a task or releases an element: what is to be
/// resumed or released is returned, and the caller drops it after it has left the lock.
///
/// Invariant: `kept` holds the elements from `state.floor` to `state.head`, in order.
struct ChannelContents<Element: Sendable, Failure: Error>: ~Copyable {
  private(set) var state: ChannelState<Waiter>
  private(set) var kept = ElementRing<Element>()
  /// Each buffered subscriber's own buffer, by its id.
  private(set) var collected = CollectorBuffers<Element>()
  private var failureBox: FailureBox?
  /// The upstream producer suspended in `demand()`, if any.
  var waitingProducer: UnsafeContinuation<Void, Never>?

  typealias Released = ReleasedElements<Element>

  /// Keeps the error apart, so that the size of the contents does not depend on it.
  private final class FailureBox {
    let failure: Failure
    init(_ failure: Failure) { self.failure = failure }
  }

  init(replay: Int) {
    state = ChannelState(replayLimit: replay)
  }

  // MARK: - Sending

  /// Sends an element to every subscriber.
  ///
  /// - Returns: Who is to be resumed with the element; nil when the channel had ended.
  @inline(__always)
  mutating func send(_ element: Element, releasing released: inout Released) -> ChannelState<Waiter>.Resumptions? {
    if state.hasEnded { return nil }
    if !state.collectors.isEmpty { collect(element, into: &released) }
    let (keep, resumptions) = state.send()
    if state.isReleaseDue { release(into: &released) }
    if keep { kept.append(element) }
    return resumptions
  }

  private mutating func collect(_ element: Element, into released: inout Released) {
    for index in state.collectors.indices.reversed() {
      let id = state.collectors[index]
      switch state.collect(at: index) {
      case .handedOver, .drop: break
      case .append: collected.buffer(id).pointee.append(element)
      case .replaceLast: collected.buffer(id).pointee.replaceLast(with: element, into: &released)
      }
    }
  }

  /// Ends the channel, if nothing has ended it yet.
  ///
  /// - Returns: Who is to be resumed.
  mutating func finish(_ failure: Failure?) -> ContiguousArray<Waiter> {
    guard let waiters = state.finish() else { return [] }
    failureBox = failure.map { FailureBox($0) }
    return waiters
  }

  mutating func resetReplay(releasing released: inout Released) {
    state.resetReplay()
    release(into: &released)
  }

  /// The newest element that is replayed; nil when there is none.
  var latest: Element? {
    state.replayStart < state.head ? kept.element(at: kept.count - 1) : nil
  }

  // MARK: - Reading

  @inline(__always)
  mutating func subscribe(_ policy: BufferingPolicy<Failure>) -> Int {
    let overflow: CollectionOverflow? =
      switch policy.overflow {
      case .dropOldest: nil
      case .dropNewest: .dropNewest
      case .replaceNewest: .replaceNewest
      case .error: .error
      }
    let id = state.subscribe(capacity: policy.capacity, overflow: overflow)
    if overflow != nil { beginCollecting(id) }
    return id
  }

  /// Gives a buffered subscriber its buffer, with the replay in it.
  private mutating func beginCollecting(_ id: Int) {
    collected.add(id)
    let buffer = collected.buffer(id)
    for position in state.replayStart..<state.head { buffer.pointee.append(kept.element(at: position - state.floor)) }
  }

  /// Puts the next elements of a subscriber, at most `limit`, into uninitialised memory.
  @inline(__always)
  mutating func read(
    _ id: Int, limit: Int, into target: ElementSlots<Element>, releasing released: inout Released
  ) -> ReadOutcome {
    switch state.read(id, limit: limit) {
    case .copy(let position, let count):
      kept.copy(from: position - state.floor, count: count, to: target.base)
      return .elements(count)
    case .take(let count):
      kept.moveFirst(count, to: target.base)
      kept.shrink()
      return .elements(count)
    case .takeCollected:
      collected.buffer(id).pointee.moveFirst(1, to: target.base)
      collected.buffer(id).pointee.shrink()
      return .elements(1)
    case .end:
      // The subscriber needs nothing any more, however long it is held.
      release(into: &released)
      return failureBox == nil ? .finished : .failed
    case .overflow(let capacity): return .overflowed(capacity: capacity)
    case .nothing: return .finished
    case .wait: return .wait
    }
  }

  /// Keeps the waiter, unless there is something to read.
  @inline(__always)
  mutating func park(_ id: Int, _ waiter: Waiter, releasing released: inout Released) -> Bool {
    if state.isReadable(id) { return false }
    state.park(id, waiter)
    if state.isReleaseDueAfterParking { release(into: &released) }
    return true
  }

  /// What failed the channel.
  var failure: Failure? { failureBox?.failure }

  /// Ends a subscriber at once and lets go of its backlog.
  ///
  /// - Returns: Who is to be resumed, to find the end.
  @inline(__always)
  mutating func cancel(_ id: Int, releasing released: inout Released) -> ContiguousArray<Waiter> {
    if state.isCollector(id) { emptyCollector(id, into: &released) }
    guard let waiters = state.cancel(id) else { return [] }
    release(into: &released)
    return waiters
  }

  /// Forgets a subscriber of which no call of `next()` can follow.
  @inline(__always)
  mutating func remove(_ id: Int, releasing released: inout Released) {
    let waiters = cancel(id, releasing: &released)
    assert(waiters.isEmpty, "A call that waits holds the subscriber.")
    state.remove(id)
  }

  private mutating func emptyCollector(_ id: Int, into released: inout Released) {
    guard collected.contains(id) else { return }
    let buffer = collected.buffer(id)
    buffer.pointee.removeFirst(buffer.pointee.count, into: &released)
    collected.remove(id)
  }

  mutating func countDropped(_ id: Int, _ count: Int) {
    state.countDropped(id, count)
  }

  // MARK: - Releasing

  @inline(__always)
  private mutating func release(into released: inout Released) {
    let count = state.raiseFloor()
    guard count > 0 else { return }
    kept.removeFirst(count, into: &released)
    kept.shrink()
  }
}

/// What a subscriber finds.
enum ReadOutcome {
  /// This many elements were put where the caller said.
  case elements(Int)
  /// The end, or nothing any more.
  case finished
  /// The channel's failure, to be thrown now and not again.
  case failed
  /// The subscriber's own overflow, to be thrown now and not again.
  case overflowed(capacity: Int)
  /// There is nothing yet.
  case wait
}
