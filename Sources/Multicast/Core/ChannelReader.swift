internal import Synchronization

/// One registered subscriber: takes what is there from the channel, in batches where its policy allows, and waits for
/// more.
///
/// An unbounded subscriber that lags takes the channel's lock once for a batch of elements and hands them out without
/// it. A batch is part of the subscriber's backlog. A subscriber whose policy may yet drop what it has not read takes
/// one element at a time, so that what it drops is released.
///
/// The unsafe properties below belong to the call that holds the `gate`, and to `deinit`. The gate is held for a few
/// instructions or one turn of the channel's lock, never across a suspension or a call of foreign code. It is contended
/// only where several tasks share one subscription, or one cancels it while another reads.
@usableFromInline
final class ChannelReader<Element: Sendable, Failure: Error>: Sendable {
  private let core: ChannelCore<Element, Failure>
  private let id: Int
  private let policy: BufferingPolicy<Failure>
  private let live = MulticastDiagnostics.LiveSubscription()

  private let gate = Atomic<Bool>(false)
  private let isCancelled = Atomic<Bool>(false)
  private let isMailboxTaken = Atomic<Bool>(false)
  /// The channel's progress when this subscriber had taken all there was.
  ///
  /// A hint: to be wrong costs a turn, no more.
  private let idleProgress = Atomic<Int>(-1)

  /// The most elements of a batch.
  private let batchLimit: Int
  /// Room for a batch, and behind it for one element that is handed off: the hand-off slot.
  nonisolated(unsafe) private let memory: UnsafeMutablePointer<Element>
  /// The elements of the batch that have not been handed out: initialised, as no other slots are.
  nonisolated(unsafe) private var batch = 0..<0
  /// Whether the batch was empty when the gate was left, for a check without it.
  private let isBatchEmpty = Atomic<Bool>(true)

  init(core: ChannelCore<Element, Failure>, policy: BufferingPolicy<Failure>) {
    self.core = core
    self.policy = policy
    batchLimit = policy.isUnbounded ? min(max(2_048 / max(MemoryLayout<Element>.stride, 1), 8), 64) : 1
    memory = .allocate(capacity: batchLimit + 1)
    id = core.subscribe(policy)
  }

  deinit {
    core.remove(id)
    (memory + batch.lowerBound).deinitialize(count: batch.count)
    memory.deallocate()
  }

  var droppedCount: Int { core.droppedCount(id) }

  // MARK: - Reading

  /// Whether the batch has the next element.
  ///
  /// If so, ``takeFromBatch()`` must follow; if not, ``advance()``.
  @usableFromInline
  func beginTakingFromBatch() -> Bool {
    if isBatchEmpty.load(ordering: .relaxed) || Task.isCancelled || !enterGate() { return false }
    if !batch.isEmpty, !isCancelled.load(ordering: .relaxed) { return true }
    leaveGate()
    return false
  }

  /// The next element of the batch, which must have one, and leaves the gate.
  @usableFromInline
  func takeFromBatch() -> Element {
    defer { leaveGate() }
    let first = batch.lowerBound
    batch = first + 1..<batch.upperBound
    if batch.isEmpty { isBatchEmpty.store(true, ordering: .relaxed) }
    return (memory + first).move()
  }

  /// Where the next element is.
  ///
  /// Not the element itself: code that knows nothing of a type's size moves a value of it in one step, but looks up the
  /// type's metadata to keep one across a suspension.
  @usableFromInline
  enum Position {
    /// ``takeFromBatch()`` must follow.
    case batch
    /// ``take(from:)`` must follow.
    case mailbox(ElementSlots<Element>)
    case end
  }

  /// Finds the next element, waiting for it if need be.
  @usableFromInline
  nonisolated(nonsending) func advance() async throws(Failure) -> Position {
    // A subscriber that has taken all there was waits without another check. Where that is wrong, `park` notices.
    var isIdle = isBatchEmpty.load(ordering: .relaxed) && core.progress == idleProgress.load(ordering: .relaxed)
    while true {
      if !isIdle {
        if Task.isCancelled || isCancelled.load(ordering: .relaxed) {
          cancel()
          return .end
        }
        while !enterGate() { await Task.yield() }
        let progress = core.progress
        switch fillBatch() {
        case .elements:
          return isDemanding ? .mailbox(takeAndSignalDemand()) : .batch
        case .finished:
          return .end
        case .failed:
          throw core.failure
        case .overflowed(let capacity):
          throw policy.makeError(BufferOverflow(capacity: capacity))
        case .wait:
          idleProgress.store(progress, ordering: .relaxed)
        }
      }
      let mailbox = takeMailbox()
      let wake = await withTaskCancellationHandler {
        await withUnsafeContinuation { continuation in
          core.park(id, Waiter(continuation, target: mailbox.base))
        }
      } onCancel: {
        cancel()
      }
      if wake == .element {
        core.noticeHandOver()
        // What was handed off is the only element that was sent since.
        idleProgress.store(idleProgress.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        return .mailbox(mailbox)
      }
      returnMailbox(mailbox)
      isIdle = false
    }
  }

  /// The element that was handed off.
  @usableFromInline
  func take(from mailbox: ElementSlots<Element>) -> Element {
    defer { returnMailbox(mailbox) }
    return mailbox.base.move()
  }

  /// Ends this subscriber: every call of `next()`, waiting or to come, returns nil.
  func cancel() {
    // A task that is cancelled lends itself to its cancellation handler, and may end, with its iterator, inside the
    // resumption below where its executor runs it at once. A reference that is borrowed would not outlast that.
    let this = Unmanaged.passRetained(self)
    defer { this.release() }
    isCancelled.store(true, ordering: .relaxed)
    core.cancel(id)
    if discardBatchIfFree() || batchLimit == 1 { return }
    // The task that holds the gate is inside a call of `next()`. It may never make another, which would find the flag.
    Task { [weak self] in
      while self?.discardBatchIfFree() == false { await Task.yield() }
    }
  }

  // MARK: - The batch

  private func enterGate() -> Bool {
    !gate.exchange(true, ordering: .acquiring)
  }

  private func leaveGate() {
    gate.store(false, ordering: .releasing)
  }

  /// Fills the batch if it is empty, and leaves the gate unless there is an element to take.
  private func fillBatch() -> ReadOutcome {
    if !batch.isEmpty { return .elements(batch.count) }
    var released = ReleasedElements<Element>()
    // Last of all, with the gate left, because it may run foreign code.
    defer { released.release() }
    let outcome = core.read(id, limit: batchLimit, into: ElementSlots(base: memory), releasing: &released)
    if case .elements(let count) = outcome {
      assert(released.isEmpty, "Released inside the gate.")
      batch = 0..<count
      isBatchEmpty.store(false, ordering: .relaxed)
    } else {
      leaveGate()
    }
    return outcome
  }

  /// Gives up what is left of the batch, which counts as dropped, unless another call holds the gate.
  private func discardBatchIfFree() -> Bool {
    guard enterGate() else { return false }
    var discarded = ReleasedElements<Element>()
    if !batch.isEmpty {
      core.countDropped(id, batch.count)
      isBatchEmpty.store(true, ordering: .relaxed)
      for index in batch { discarded.append(movingFrom: memory + index) }
      batch = 0..<0
    }
    leaveGate()
    // Only now, because it may run foreign code.
    discarded.release()
    return true
  }

  /// Whether each element that this subscriber takes may be what the channel's producer waits for.
  private var isDemanding: Bool { core.isPulled && policy.keepsOldest }

  /// Takes the element of the batch, leaves the gate, and only then lets the producer go on, as that may run code of
  /// others.
  private func takeAndSignalDemand() -> ElementSlots<Element> {
    let mailbox = takeMailbox()
    mailbox.base.initialize(to: takeFromBatch())
    core.signalDemand()
    return mailbox
  }

  // MARK: - The hand-off slot

  /// Room for the element that is handed off to a waiting call: the subscriber's own unless another task waits there.
  private func takeMailbox() -> ElementSlots<Element> {
    let isTaken = isMailboxTaken.exchange(true, ordering: .acquiring)
    return ElementSlots(base: isTaken ? .allocate(capacity: 1) : memory + batchLimit)
  }

  private func returnMailbox(_ mailbox: ElementSlots<Element>) {
    if mailbox.base == memory + batchLimit {
      isMailboxTaken.store(false, ordering: .releasing)
    } else {
      mailbox.base.deallocate()
    }
  }
}
