internal import Synchronization

/// A registered subscriber, which takes available elements from the channel and suspends when there are none.
///
/// An unbounded subscriber that lags takes the channel's lock once for a batch of elements, and returns them one by one
/// without the lock. A batch is part of the subscriber's backlog. A bounded subscriber takes one element at a time,
/// because its policy may still drop its unread elements, and a batch would keep the dropped ones alive.
///
/// The `gate` is a lock that blocks no thread: a task that can't enter it yields and tries again. Only the call that
/// holds the gate, and `deinit`, may use `batch` and the memory of the batch. The hand-off slot needs no gate: it
/// belongs to the call that has taken it. The gate is held for a few instructions or for one critical section of the
/// channel, never across a suspension or a call of user code. It is contended only when several tasks share one
/// subscription, or when one task cancels the subscription while another task reads.
@usableFromInline
final class ChannelSubscriber<Element: Sendable, Failure: Error>: Sendable {
  private let core: ChannelCore<Element, Failure>
  private let id: Int
  private let policy: BufferingPolicy<Failure>
  private let liveSubscriptionToken = MulticastDiagnostics.LiveSubscription()

  private let gate = Atomic<Bool>(false)
  private let isCancelled = Atomic<Bool>(false)
  private let isHandOffSlotTaken = Atomic<Bool>(false)
  /// The channel's progress when this subscriber last found nothing to read.
  ///
  /// This is a hint: a wrong value costs one needless read or one more turn of the loop in ``advance()``, and nothing
  /// else.
  private let idleProgress = Atomic<Int>(-1)

  /// Whether suspending may create the demand that the channel's producer waits for.
  ///
  /// `true` if the channel's producer waits for demand and the policy's capacity is 0. Without a replay, such a
  /// subscriber accepts an element only while it is suspended.
  private let requestsBySuspending: Bool

  /// The maximum number of elements in a batch.
  ///
  /// It is 1 for a bounded subscriber. For an unbounded one, it is as many as fit into 2,048 bytes, but at least 8 and
  /// at most 64. This makes the lock cheap for each element, and keeps the memory of each subscriber small.
  private let batchLimit: Int
  /// Memory for a batch, followed by the hand-off slot, which has room for one element.
  nonisolated(unsafe) private let memory: UnsafeMutablePointer<Element>
  /// The indices of the batch's elements that have not been returned yet.
  ///
  /// Of the slots for the batch, only these are initialized.
  nonisolated(unsafe) private var batch = 0..<0
  /// A hint about whether the batch is empty, for checks without the gate.
  private let isBatchEmpty = Atomic<Bool>(true)

  init(core: ChannelCore<Element, Failure>, policy: BufferingPolicy<Failure>) {
    self.core = core
    self.policy = policy
    batchLimit = policy.isUnbounded ? min(max(2_048 / max(MemoryLayout<Element>.stride, 1), 8), 64) : 1
    requestsBySuspending = core.isPulled && policy.capacity == 0
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

  /// Tries to enter the gate in order to take the next element from the batch.
  ///
  /// - Returns: Whether the caller now holds the gate. If so, it must call ``takeFromBatch()``; otherwise, it must call
  ///   ``advance()``.
  @usableFromInline
  func beginTakingFromBatch() -> Bool {
    if isBatchEmpty.load(ordering: .relaxed) || Task.isCancelled || !enterGateIfFree() { return false }
    if !batch.isEmpty, !isCancelled.load(ordering: .relaxed) { return true }
    leaveGate()
    return false
  }

  /// Takes the next element of the batch, which must not be empty, and leaves the gate.
  @usableFromInline
  func takeFromBatch() -> Element {
    defer { leaveGate() }
    let first = batch.lowerBound
    batch = first + 1..<batch.upperBound
    if batch.isEmpty { isBatchEmpty.store(true, ordering: .relaxed) }
    return (memory + first).move()
  }

  /// The location of the next element.
  ///
  /// ``advance()`` returns the location instead of the element, to avoid a lookup of the type's metadata. Unspecialized
  /// code needs the lookup to keep a generic value across a suspension, but not to move it.
  @usableFromInline
  enum Location {
    /// The element is in the batch, and the gate is held. The caller must call ``takeFromBatch()``.
    case batch
    /// The element is in a hand-off slot. The caller must call ``take(from:)``.
    case handOffSlot(ElementSlots<Element>)
    /// There is no next element: the subscription has ended.
    case end
  }

  /// Finds the next element, and suspends first if there is none yet.
  @usableFromInline
  nonisolated(nonsending) func advance() async throws(Failure) -> Location {
    // A subscriber that found nothing to read suspends without another read if there was no progress since. If a wrong
    // hint makes `isIdle` true, `park` resumes this call at once, because the channel's state also records whether
    // elements are unread, and whether any may be left in the batch.
    var isIdle = isBatchEmpty.load(ordering: .relaxed) && core.progress == idleProgress.load(ordering: .relaxed)
    while true {
      if !isIdle {
        if Task.isCancelled || isCancelled.load(ordering: .relaxed) {
          cancel()
          return .end
        }
        while !enterGateIfFree() { await Task.yield() }
        let progress = core.progress
        switch fillBatch() {
        case .elements:
          return requestsByTaking ? .handOffSlot(takeAndSignalDemand()) : .batch
        case .finished:
          return .end
        case .failed:
          throw core.failure
        case .overflowed(let capacity):
          throw policy.makeError(BufferOverflow(capacity: capacity))
        case .nothingYet:
          idleProgress.store(progress, ordering: .relaxed)
        }
      }
      let slot = takeHandOffSlot()
      let wake = await withTaskCancellationHandler {
        await withUnsafeContinuation { continuation in
          core.park(id, Waiter(continuation, target: slot.base))
          // Even if `park` resumes this call at once, it continues only after the closure, so `self` stays alive.
          if requestsBySuspending { core.signalDemand() }
        }
      } onCancel: {
        cancel()
      }
      if wake == .element {
        core.showHandOffToSanitizer()
        // The hand-off was the first send since the subscriber found nothing to read, so the subscriber has read every
        // element up to and including this one.
        idleProgress.store(idleProgress.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        return .handOffSlot(slot)
      }
      returnHandOffSlot(slot)
      isIdle = false
    }
  }

  /// Takes the element from a hand-off slot, and frees the slot.
  @usableFromInline
  func take(from slot: ElementSlots<Element>) -> Element {
    defer { returnHandOffSlot(slot) }
    return slot.base.move()
  }

  /// Ends this subscriber: every later call of `next()` returns `nil`.
  ///
  /// A pending one does too, unless it already has an element.
  func cancel() {
    // The caller may be a cancellation handler, which only borrows this subscriber from the cancelled task. If the
    // task's executor runs jobs at once, `core.cancel` may run the task to completion and release its iterator. This
    // call therefore needs a reference of its own.
    let this = Unmanaged.passRetained(self)
    defer { this.release() }
    isCancelled.store(true, ordering: .relaxed)
    core.cancel(id)
    if discardBatchIfGateIsFree() || batchLimit == 1 { return }
    // A concurrent call holds the gate, and the batch may have several elements. If the call is a `next()`, the rest
    // of the batch would stay until another `next()`, which may never be called. So another task retries until the
    // gate is free.
    Task { [weak self] in
      while self?.discardBatchIfGateIsFree() == false { await Task.yield() }
    }
  }

  // MARK: - The batch

  private func enterGateIfFree() -> Bool {
    !gate.exchange(true, ordering: .acquiring)
  }

  private func leaveGate() {
    gate.store(false, ordering: .releasing)
  }

  /// Fills the batch if it is empty, and leaves the gate unless the batch then has an element.
  private func fillBatch() -> ReadOutcome {
    if !batch.isEmpty { return .elements(batch.count) }
    var released = ReleasedElements<Element>()
    // Deferred until the gate has been left, because releasing an element may run user code.
    defer { released.release() }
    let outcome = core.read(id, limit: batchLimit, into: ElementSlots(base: memory), releasing: &released)
    if case .elements(let count) = outcome {
      assert(released.isEmpty, "An element would be released inside the gate.")
      batch = 0..<count
      isBatchEmpty.store(false, ordering: .relaxed)
    } else {
      leaveGate()
    }
    return outcome
  }

  /// Discards the rest of the batch and counts it as dropped, unless another call holds the gate.
  ///
  /// - Returns: Whether the gate was free.
  private func discardBatchIfGateIsFree() -> Bool {
    guard enterGateIfFree() else { return false }
    var discarded = ReleasedElements<Element>()
    if !batch.isEmpty {
      core.countDropped(id, batch.count)
      isBatchEmpty.store(true, ordering: .relaxed)
      for index in batch { discarded.append(movingFrom: memory + index) }
      batch = 0..<0
    }
    leaveGate()
    // After leaving the gate, because releasing an element may run user code.
    discarded.release()
    return true
  }

  /// Whether taking an element may create the demand that the channel's producer waits for.
  private var requestsByTaking: Bool { core.isPulled && policy.keepsOldest }

  /// Moves the element of the batch to a hand-off slot, leaves the gate, and then signals demand.
  ///
  /// The order matters, because resuming the producer may run user code, which must not run inside the gate.
  private func takeAndSignalDemand() -> ElementSlots<Element> {
    let slot = takeHandOffSlot()
    slot.base.initialize(to: takeFromBatch())
    core.signalDemand()
    return slot
  }

  // MARK: - The hand-off slot

  /// Returns memory for one element outside the batch: the subscriber's own hand-off slot, or newly allocated memory if
  /// another task's call uses that slot.
  private func takeHandOffSlot() -> ElementSlots<Element> {
    let isTaken = isHandOffSlotTaken.exchange(true, ordering: .acquiring)
    return ElementSlots(base: isTaken ? .allocate(capacity: 1) : memory + batchLimit)
  }

  private func returnHandOffSlot(_ slot: ElementSlots<Element>) {
    if slot.base == memory + batchLimit {
      isHandOffSlotTaken.store(false, ordering: .releasing)
    } else {
      slot.base.deallocate()
    }
  }
}
