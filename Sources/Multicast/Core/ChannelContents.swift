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
  private(set) var buffers = SubscriberBuffers<Element>()
  private var failureBox: FailureBox?
  /// The upstream producer suspended in `demand()`, if any.
  private var waitingProducer: UnsafeContinuation<Void, Never>?

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
    if state.hasTerminated { return nil }
    if !state.bufferedSubscribers.isEmpty { offer(element, releasing: &released) }
    let action = state.send()
    if action.releaseCount > 0 { release(action.releaseCount, into: &released) }
    if action.isKept { kept.append(element) }
    return action.resumptions
  }

  private mutating func offer(_ element: Element, releasing released: inout Released) {
    // From the last to the first, because an offer may remove its subscriber from the array.
    for index in state.bufferedSubscribers.indices.reversed() {
      let id = state.bufferedSubscribers[index]
      switch state.offer(at: index) {
      case .handOff, .drop: break
      case .append: buffers.buffer(id).pointee.append(element)
      case .replaceLast: buffers.buffer(id).pointee.replaceLast(with: element, into: &released)
      }
    }
  }

  /// Terminates the channel, unless it has already terminated.
  ///
  /// - Returns: The waiters to resume.
  mutating func finish(_ failure: Failure?) -> ContiguousArray<Waiter> {
    switch state.finish() {
    case .none: return []
    case .terminate(let waiters):
      failureBox = failure.map { FailureBox($0) }
      return waiters
    }
  }

  mutating func resetReplay(releasing released: inout Released) {
    release(state.resetReplay().releaseCount, into: &released)
  }

  /// The newest element of the replay, or `nil` if the replay is empty.
  var latest: Element? {
    state.replayStart < state.head ? kept.element(at: kept.count - 1) : nil
  }

  // MARK: - Reading

  @inline(__always)
  mutating func subscribe(_ policy: BufferingPolicy<Failure>) -> Int {
    let overflow: OverflowBehavior? =
      switch policy.overflow {
      case .dropOldest: nil
      case .dropNewest: .dropNewest
      case .replaceNewest: .replaceNewest
      case .error: .error
      }
    switch state.subscribe(capacity: policy.capacity, overflow: overflow) {
    case .readKept(let id): return id
    case .createBuffer(let id, let replay):
      createBuffer(of: id, replay: replay)
      return id
    }
  }

  /// Gives a buffered subscriber its buffer, with the replay in it.
  private mutating func createBuffer(of id: Int, replay: Range<Int>) {
    buffers.add(id)
    let buffer = buffers.buffer(id)
    for position in replay { buffer.pointee.append(kept.element(at: position - state.floor)) }
  }

  /// Copies or moves a subscriber's next elements, at most `limit`, into uninitialized memory.
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
    case .takeBuffered:
      buffers.buffer(id).pointee.moveFirst(1, to: target.base)
      buffers.buffer(id).pointee.shrink()
      return .elements(1)
    case .terminate(let releaseCount):
      release(releaseCount, into: &released)
      return failureBox == nil ? .finished : .failed
    case .overflow(let capacity): return .overflowed(capacity: capacity)
    case .returnNil: return .finished
    case .suspend: return .nothingYet
    }
  }

  /// Stores a suspended call's waiter, unless the subscriber has something to read.
  ///
  /// - Returns: Whether the waiter was stored. If it wasn't, the caller must resume it.
  @inline(__always)
  mutating func park(_ id: Int, _ waiter: Waiter, releasing released: inout Released) -> Bool {
    switch state.park(id, waiter) {
    case .resume: return false
    case .suspend(let releaseCount):
      if releaseCount > 0 { release(releaseCount, into: &released) }
      return true
    }
  }

  /// The error that the channel failed with, if any.
  var failure: Failure? { failureBox?.failure }

  /// Ends a subscriber at once and moves its backlog to `released`, except elements that another subscriber or the
  /// replay needs.
  ///
  /// - Returns: The waiters to resume, which then return `nil`.
  @inline(__always)
  mutating func cancel(_ id: Int, releasing released: inout Released) -> ContiguousArray<Waiter> {
    switch state.cancel(id) {
    case .none: return []
    case .release(let releaseCount, let waiters):
      release(releaseCount, into: &released)
      return waiters
    case .emptyBuffer(let waiters):
      let buffer = buffers.buffer(id)
      buffer.pointee.removeFirst(buffer.pointee.count, into: &released)
      buffer.pointee.shrink()
      return waiters
    }
  }

  /// Removes a subscriber whose `next()` can't be called again.
  @inline(__always)
  mutating func remove(_ id: Int, releasing released: inout Released) {
    let waiters = cancel(id, releasing: &released)
    assert(waiters.isEmpty, "A suspended call retains its subscriber.")
    if state.isBuffered(id) { buffers.remove(id) }
    state.remove(id)
  }

  /// Counts elements of a batch that a cancelled subscriber discarded.
  mutating func countDropped(_ id: Int, _ count: Int) {
    state.countDropped(id, count)
  }

  // MARK: - Demand

  /// Stores the suspended upstream producer, unless a subscriber would keep another element.
  ///
  /// - Returns: Whether the producer was stored. If it wasn't, the caller must resume it.
  mutating func parkProducer(_ producer: UnsafeContinuation<Void, Never>) -> Bool {
    if state.isElementUseful { return false }
    waitingProducer = producer
    return true
  }

  /// Takes the suspended producer, if there is one.
  mutating func takeProducer() -> UnsafeContinuation<Void, Never>? {
    waitingProducer.take()
  }

  /// Takes the suspended producer, if there is one and a subscriber would keep another element.
  mutating func takeDemandedProducer() -> UnsafeContinuation<Void, Never>? {
    waitingProducer != nil && state.isElementUseful ? waitingProducer.take() : nil
  }

  // MARK: - Releasing

  /// Moves the oldest kept elements to `released`.
  @inline(__always)
  private mutating func release(_ count: Int, into released: inout Released) {
    guard count > 0 else { return }
    kept.removeFirst(count, into: &released)
    kept.shrink()
  }
}

/// The result of reading a subscriber's next elements.
enum ReadOutcome {
  /// The given number of elements was written to the caller's memory.
  case elements(Int)
  /// The subscriber has ended, and there is no error left to throw.
  ///
  /// Every later read returns this, too.
  case finished
  /// The channel failed.
  ///
  /// A subscriber's reads return this only once, so that the error is thrown once.
  case failed
  /// The subscriber's buffer overflowed.
  ///
  /// A subscriber's reads return this only once, so that the error is thrown once.
  case overflowed(capacity: Int)
  /// No element is available yet.
  case nothingYet
}
