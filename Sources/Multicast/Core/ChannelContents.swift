/// The state that a channel's lock guards: the positions, and the elements at those positions.
///
/// The contents apply each action of ``ChannelState`` to the elements. They resume no task and release no element,
/// because either may run user code. Waiters and elements are returned instead, and the caller resumes and releases
/// them after it has unlocked.
///
/// Invariant: `kept` holds the elements from `state.floor` up to `state.head`, in order.
struct ChannelContents<Element: Sendable, Failure: Error>: ~Copyable {
  private(set) var state: ChannelState<Waiter>
  private(set) var kept = ElementRing<Element>()
  /// The buffers of the buffered subscribers, by subscriber id.
  private(set) var collected = CollectorBuffers<Element>()
  private var failureBox: FailureBox?
  /// The upstream producer suspended in `demand()`, if any.
  var waitingProducer: UnsafeContinuation<Void, Never>?

  typealias Released = ReleasedElements<Element>

  /// A box for the channel's failure, so that the size of the contents doesn't depend on the type of the error.
  private final class FailureBox {
    let failure: Failure
    init(_ failure: Failure) { self.failure = failure }
  }

  init(replay: Int) {
    state = ChannelState(replayLimit: replay)
  }

  // MARK: - Sending

  /// Records an element for every subscriber.
  ///
  /// - Returns: The waiters to resume with the element, or `nil` if the channel has terminated.
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

  /// Terminates the channel, unless it has already terminated.
  ///
  /// - Returns: The waiters to resume.
  mutating func finish(_ failure: Failure?) -> ContiguousArray<Waiter> {
    guard let waiters = state.finish() else { return [] }
    failureBox = failure.map { FailureBox($0) }
    return waiters
  }

  mutating func resetReplay(releasing released: inout Released) {
    state.resetReplay()
    release(into: &released)
  }

  /// The newest element of the replay, or `nil` if the replay is empty.
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

  /// Copies or moves a subscriber's next elements, at most `limit`, into uninitialised memory.
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
      // The subscriber needs no more elements, even if it stays alive.
      release(into: &released)
      return failureBox == nil ? .finished : .failed
    case .overflow(let capacity): return .overflowed(capacity: capacity)
    case .nothing: return .finished
    case .wait: return .wait
    }
  }

  /// Stores a suspended call's waiter, unless the subscriber has something to read.
  ///
  /// - Returns: Whether the waiter was stored. Otherwise, the caller resumes it.
  @inline(__always)
  mutating func park(_ id: Int, _ waiter: Waiter, releasing released: inout Released) -> Bool {
    if state.isReadable(id) { return false }
    state.park(id, waiter)
    if state.isReleaseDueAfterParking { release(into: &released) }
    return true
  }

  /// The error that the channel failed with, if any.
  var failure: Failure? { failureBox?.failure }

  /// Ends a subscriber at once and releases its backlog.
  ///
  /// - Returns: The waiters to resume, which then return `nil`.
  @inline(__always)
  mutating func cancel(_ id: Int, releasing released: inout Released) -> ContiguousArray<Waiter> {
    if state.isCollector(id) { emptyCollector(id, into: &released) }
    guard let waiters = state.cancel(id) else { return [] }
    release(into: &released)
    return waiters
  }

  /// Removes a subscriber whose `next()` cannot be called again.
  @inline(__always)
  mutating func remove(_ id: Int, releasing released: inout Released) {
    let waiters = cancel(id, releasing: &released)
    assert(waiters.isEmpty, "A suspended call retains its subscriber.")
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

/// The result of reading a subscriber's next elements.
enum ReadOutcome {
  /// The given number of elements was written to the caller's memory.
  case elements(Int)
  /// The subscriber has finished or was cancelled. Every later read returns this, too.
  case finished
  /// The channel failed. Returned once, for the error to be thrown once.
  case failed
  /// The subscriber's buffer overflowed. Returned once, for the error to be thrown once.
  case overflowed(capacity: Int)
  /// No element is available yet.
  case wait
}
