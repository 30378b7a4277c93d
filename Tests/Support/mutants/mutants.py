"""The mutants: deliberate defects of Sources/Multicast that the tests must detect."""

from mutant import mutants_of

mutant = mutants_of("Multicast")

STATE = "Core/ChannelState.swift"
CONTENTS = "Core/ChannelContents.swift"
CORE = "Core/ChannelCore.swift"
SUBSCRIBER = "Core/ChannelSubscriber.swift"
RING = "Core/ElementRing.swift"

MUTANTS = [
    mutant(
        "registration-in-two-steps",
        "the replay is taken in the same critical section as the registration (C4)",
        (
            CORE,
            "    contents.withLock { $0.subscribe(policy) }\n",
            "    let start = contents.withLock { $0.state.replayStart }\n"
            "    return contents.withLock { $0.subscribe(policy, from: start) }\n",
        ),
        (
            CONTENTS,
            "  /// Gives a buffered subscriber its buffer, with the replay in it.\n",
            "  mutating func subscribe(_ policy: BufferingPolicy<Failure>, from start: Int) -> Int {\n"
            "    let id = subscribe(policy)\n"
            "    if !state.isBuffered(id) { state.moveCursor(of: id, to: start) }\n"
            "    return id\n"
            "  }\n\n"
            "  /// Gives a buffered subscriber its buffer, with the replay in it.\n",
        ),
        (
            STATE,
            "  // MARK: - Cursors\n",
            "  mutating func moveCursor(of id: Int, to position: Int) { cursors[id].position = position }\n\n"
            "  // MARK: - Cursors\n",
        ),
    ),
    mutant(
        "buffered-subscriber-registered-in-two-steps",
        "the replay is taken in the same critical section as the registration (C4)",
        (
            CORE,
            "    contents.withLock { $0.subscribe(policy) }\n",
            "    let id = contents.withLock { $0.subscribe(policy) }\n"
            "    contents.withLock { $0.replay(to: id) }\n"
            "    return id\n",
        ),
        (
            CONTENTS,
            "      createBuffer(of: id, replay: replay)\n",
            "      createBuffer(of: id, replay: replay.prefix(0))\n",
        ),
        (
            CONTENTS,
            "  /// Gives a buffered subscriber its buffer, with the replay in it.\n",
            "  mutating func replay(to id: Int) {\n"
            "    guard state.isBuffered(id) else { return }\n"
            "    let buffer = buffers.buffer(id)\n"
            "    let later = (0..<buffer.pointee.count).map { buffer.pointee.element(at: $0) }\n"
            "    buffers.remove(id)\n"
            "    createBuffer(of: id, replay: state.replayStart..<state.head)\n"
            "    for element in later { buffers.buffer(id).pointee.append(element) }\n"
            "  }\n\n"
            "  /// Gives a buffered subscriber its buffer, with the replay in it.\n",
        ),
    ),
    mutant(
        "resume-under-the-lock",
        "no continuation is resumed under a lock (C13)",
        (
            CORE,
            "      countProgress()\n      return contents.send(element, releasing: &released)\n    }\n",
            "      countProgress()\n      let resumptions = contents.send(element, releasing: &released)\n"
            "      if let resumptions { resume(resumptions, with: element) }\n"
            "      return resumptions.map { _ in ChannelState<Waiter>.Resumptions.none }\n    }\n",
        ),
    ),
    mutant(
        "finish-resumes-under-the-lock",
        "no continuation is resumed under a lock (C13)",
        (
            CORE,
            "      return contents.finish(failure)\n    }\n    for waiter in waiters { waiter.resume() }\n",
            "      for waiter in contents.finish(failure) { waiter.resume() }\n    }\n    _ = waiters\n",
        ),
    ),
    mutant(
        "release-under-the-lock",
        "no deinit runs under a lock (C13)",
        (
            CONTENTS,
            "    kept.removeFirst(count, into: &released)\n",
            "    var gone = Released()\n    kept.removeFirst(count, into: &gone)\n    gone.release()\n",
        ),
    ),
    mutant(
        "no-deinit-unregistration",
        "releasing the last iterator unregisters its subscriber (C16)",
        (SUBSCRIBER, "    core.remove(id)\n", ""),
    ),
    mutant(
        "backlog-kept-after-cancellation",
        "cancelling releases the backlog (C15)",
        (
            CONTENTS,
            "      release(releaseCount, into: &released)\n      return waiters\n",
            "      _ = releaseCount\n      return waiters\n",
        ),
    ),
    mutant(
        "buffered-backlog-kept-after-cancellation",
        "cancelling releases the backlog (C15)",
        (CONTENTS, "      buffer.pointee.removeFirst(buffer.pointee.count, into: &released)\n", ""),
    ),
    mutant(
        "window-one-too-small",
        "dropOldest(k) keeps k elements (C6)",
        (STATE, "max(cursor.position, head &- cursor.capacity)", "max(cursor.position, head &- cursor.capacity &+ 1)"),
    ),
    mutant(
        "window-one-too-large",
        "dropOldest(k) keeps k elements (C6)",
        (STATE, "max(cursor.position, head &- cursor.capacity)", "max(cursor.position, head &- cursor.capacity &- 1)"),
    ),
    mutant(
        "floor-one-too-high",
        "an element that a subscriber still needs is kept (C26)",
        (
            STATE,
            "        if place < firstNeeded {\n          firstNeeded = place\n",
            "        if place < firstNeeded {\n          firstNeeded = place + 1\n",
        ),
    ),
    mutant(
        "floor-ignores-the-replay",
        "the replay is kept (C4)",
        (STATE, "    var firstNeeded = replayStart\n", "    var firstNeeded = head\n"),
    ),
    mutant(
        "floor-never-raised",
        "an element that no subscriber needs is released (C26)",
        (STATE, "    defer { floor = firstNeeded }\n    return firstNeeded - floor\n", "    return 0\n"),
    ),
    mutant(
        "floor-raised-half-as-often",
        "an element that no subscriber needs is released after at most 16 sends (C26)",
        (STATE, "head % Self.releaseInterval == 0", "head % (2 * Self.releaseInterval) == 0"),
    ),
    mutant(
        "floor-stays-when-the-last-subscriber-waits",
        "while every subscriber waits, only the replay is kept (C26)",
        (STATE, "allCursorSubscribersWait && floor < replayStart ? raiseFloor() : 0", "0"),
    ),
    mutant(
        "wrong-slowest-subscriber",
        "an element that no subscriber needs is released (C26)",
        (STATE, "          slowestCursorSubscriber = id\n", "          slowestCursorSubscriber = 0\n"),
        (
            STATE,
            "if slowest.capacity == .max, slowest.position == floor { return 0 }",
            "if slowest.position <= floor { return 0 }",
        ),
    ),
    mutant(
        "window-drops-not-counted",
        "droppedCount is exact (C22)",
        (STATE, "    subscribers[id].droppedCount += position - cursors[id].position\n", ""),
    ),
    mutant(
        "buffer-drops-not-counted",
        "droppedCount is exact (C22)",
        (STATE, "    subscribers[id].droppedCount += 1\n", ""),
    ),
    mutant(
        "cancelled-backlog-not-counted",
        "droppedCount is exact (C22)",
        (STATE, "    subscribers[id].droppedCount += head - cursors[id].position\n", ""),
    ),
    mutant(
        "pending-drops-not-counted",
        "droppedCount is also exact before the next read (C22)",
        (STATE, "(cursor.position == .max ? 0 : place(of: cursor) - cursor.position)", "0"),
    ),
    mutant(
        "batch-kept-on-cancel",
        "cancelling releases the backlog, including the batch (C15)",
        (SUBSCRIBER, "    if !batch.isEmpty {\n", "    if !batch.isEmpty, batchLimit == 0 {\n"),
    ),
    mutant(
        "batch-kept-by-a-call-in-flight",
        "cancelling also releases the batch that a call is taking from (C15)",
        (
            SUBSCRIBER,
            "      while self?.discardBatchIfGateIsFree() == false { await Task.yield() }\n",
            "      _ = self\n",
        ),
    ),
    mutant(
        "released-inside-the-gate",
        "an element's deinit may read the subscription that released it (C13)",
        (
            SUBSCRIBER,
            "      leaveGate()\n    }\n    return outcome\n",
            "      released.release()\n      released = ReleasedElements()\n      leaveGate()\n    }\n    return outcome\n",
        ),
    ),
    mutant(
        "base-read-without-subscribers",
        "a base is not read again after its last subscriber leaves",
        (
            "Sharing/Upstream.swift",
            "          await core.demand()\n          if Task.isCancelled { return }\n",
            "          if Task.isCancelled { return }\n          await core.demand()\n",
        ),
    ),
    mutant(
        "memory-kept-by-the-only-subscriber",
        "the memory of a backlog is freed after it is read (C26)",
        (CONTENTS, "      kept.shrink()\n      return", "      return"),
    ),
    mutant(
        "batch-read-after-cancel",
        "after cancel the next call returns nil (C15)",
        (SUBSCRIBER, "    if !batch.isEmpty {\n", "    if !batch.isEmpty, batchLimit == 0 {\n"),
        (
            SUBSCRIBER,
            "if !batch.isEmpty, !isCancelled.load(ordering: .relaxed) { return true }",
            "if !batch.isEmpty { return true }",
        ),
    ),
    mutant(
        "batch-read-after-task-cancellation",
        "a cancelled task's next call returns nil (C15)",
        (
            SUBSCRIBER,
            "isBatchEmpty.load(ordering: .relaxed) || Task.isCancelled || !enterGateIfFree()",
            "isBatchEmpty.load(ordering: .relaxed) || !enterGateIfFree()",
        ),
    ),
    mutant(
        "batch-not-counted-on-cancel",
        "droppedCount is exact, and a batch is part of the backlog (C22)",
        (SUBSCRIBER, "    core.countDropped(id, batch.count)\n", ""),
    ),
    mutant(
        "batch-leaked-with-its-subscriber",
        "releasing a subscriber releases its backlog (C16)",
        (SUBSCRIBER, "    (memory + batch.lowerBound).deinitialize(count: batch.count)\n", ""),
    ),
    mutant(
        "batch-without-a-gate",
        "two tasks that read one subscription receive each element once (C18)",
        (
            SUBSCRIBER,
            "    !gate.exchange(true, ordering: .acquiring)\n",
            "    gate.exchange(true, ordering: .acquiring) || true\n",
        ),
    ),
    mutant(
        "bounded-subscriber-takes-batches",
        "a full buffer drops elements that have not been read (C6)",
        (
            SUBSCRIBER,
            "policy.isUnbounded ? min(max(2_048 / max(MemoryLayout<Element>.stride, 1), 8), 64) : 1",
            "min(max(2_048 / max(MemoryLayout<Element>.stride, 1), 8), 64)",
        ),
    ),
    mutant(
        "last-terminal-event-wins",
        "only the first termination takes effect (C10)",
        (
            CONTENTS,
            "    case .none: return []\n    case .terminate",
            "    case .none:\n      failureBox = failure.map { FailureBox($0) }\n      return []\n    case .terminate",
        ),
    ),
    mutant(
        "send-after-the-end",
        "send after termination has no effect (C12)",
        (CONTENTS, "    if state.hasTerminated { return nil }\n", ""),
    ),
    mutant(
        "hand-off-keeps-the-cursor",
        "an element that was handed off is not read again (C1)",
        (
            STATE,
            "      if subscribers[id].usesCursor { cursors[id].position = head }\n      if subscribers[id].firstWaiter == nil {",
            "      if subscribers[id].firstWaiter == nil {",
        ),
    ),
    mutant(
        "hand-off-to-many-keeps-the-cursors",
        "an element that was handed off is not read again (C1)",
        (
            STATE,
            "      if usesCursor { cursors[id].position = head }\n",
            "",
        ),
    ),
    mutant(
        "hand-off-forgets-the-second-waiter",
        "several calls of one subscription are all served (C18)",
        (STATE, "    if !otherWaiters.isEmpty { firstWaiter = otherWaiters.removeFirst() }\n", ""),
    ),
    mutant(
        "hand-off-to-the-last-waiter",
        "several calls of one subscription are served in FIFO order (C18)",
        (STATE, "firstWaiter = otherWaiters.removeFirst()", "firstWaiter = otherWaiters.removeLast()"),
    ),
    mutant(
        "buffered-although-handed-off",
        "an element that was handed off does not use the buffer (C5)",
        (STATE, "guard subscribers[id].firstWaiter == nil, let buffer", "guard let buffer"),
    ),
    mutant(
        "overflow-does-not-close",
        "a subscriber accepts no elements after an overflow (C8)",
        (
            STATE,
            "      subscribers[id].phase = .draining\n      subscriberCount -= 1\n      bufferedSubscribers.remove(at: index)\n",
            "",
        ),
    ),
    mutant(
        "overflow-delivered-twice",
        "an overflow is thrown exactly once (C8)",
        (
            STATE,
            "      subscribers[id].phase = .ended\n      return buffer.hasOverflowed",
            "      return buffer.hasOverflowed",
        ),
    ),
    mutant(
        "termination-delivered-twice",
        "the termination is delivered exactly once (C9)",
        (STATE, "    subscribers[id].phase = .ended\n    removeCursor(of: id)\n", ""),
    ),
    mutant(
        "replay-not-given-to-buffered-subscribers",
        "every subscriber receives the replay (C4)",
        (STATE, "overflow: overflow, count: head - replayStart)", "overflow: overflow, count: 0)"),
        (
            CONTENTS,
            "    for position in replay { buffer",
            "    for position in replay.prefix(0) { buffer",
        ),
    ),
    mutant(
        "capacity-below-the-replay",
        "a replay never overflows (C19)",
        (STATE, "    let capacity = max(capacity, replayLimit)\n", ""),
    ),
    mutant(
        "capacity-zero-raised-to-one",
        "the error policy may have no capacity (C19)",
        (STATE, "    let capacity = max(capacity, replayLimit)\n", "    let capacity = max(capacity, replayLimit, 1)\n"),
    ),
    mutant(
        "suspension-requests-no-element",
        "an element is requested for a suspended subscriber without capacity",
        (SUBSCRIBER, "core.isPulled && policy.capacity == 0", "false"),
    ),
    mutant(
        "element-requested-before-the-suspension",
        "no element is requested that would overflow the only subscriber",
        ("Sharing/Upstream.swift", "      await core.demand()\n      if Task.isCancelled { return }\n      do", "      do"),
    ),
    mutant(
        "waiter-kept-at-cancel",
        "cancelling resumes all suspended calls (C14)",
        (STATE, "    takeAllWaiters(of: id, into: &waiters)\n", ""),
    ),
    mutant(
        "waiter-resumed-by-finish-only-once",
        "the termination resumes all suspended calls (C18)",
        (STATE, "    waiters.append(contentsOf: subscribers[id].otherWaiters)\n", ""),
    ),
    mutant(
        "suspend-without-checking-again",
        "an element that arrives between the read and the suspension is delivered (C5)",
        (STATE, "    if isReadable(id) { return .resume }\n", ""),
    ),
    mutant(
        "count-kept-at-cancel",
        "subscriberCount is exact (C23)",
        (STATE, "    if wasReceiving { subscriberCount -= 1 }\n", ""),
    ),
    mutant(
        "buffered-after-cancel",
        "a cancelled subscriber receives no more elements (C14)",
        (STATE, "      if wasReceiving { bufferedSubscribers.removeAll { $0 == id } }\n", ""),
    ),
    mutant(
        "reset-keeps-the-replay",
        "resetReplay empties the replay (C25)",
        (STATE, "    resetPosition = head\n", ""),
    ),
    mutant(
        "ring-copies-without-wrapping",
        "the received elements are the sent ones (C1)",
        (RING, "    if untilWrap < count { (target + untilWrap).initialize(from: slots, count: count &- untilWrap) }\n",
         "    if untilWrap < count {"
            " (target + untilWrap).initialize(from: slots + firstIndex, count: count &- untilWrap) }\n"),
    ),
    mutant(
        "ring-never-shrinks",
        "the memory of a burst is freed",
        (
            RING,
            "    guard capacity > 64, count <= capacity / 8 else { return }\n",
            "    guard capacity < 0 else { return }\n",
        ),
    ),
    mutant(
        "batch-ignored-before-suspending",
        "several calls of one subscription are all served (C18)",
        (STATE, " || subscribers[id].mayHaveBatch { return true }", " { return true }"),
    ),
    mutant(
        "termination-keeps-the-log",
        "a subscriber that has read everything keeps no elements alive (C26)",
        (
            CONTENTS,
            "      release(releaseCount, into: &released)\n      return failureBox == nil ? .finished : .failed\n",
            "      _ = releaseCount\n      return failureBox == nil ? .finished : .failed\n",
        ),
    ),
]
