internal import Synchronization

/// The owner of a channel's lock and contents.
///
/// It changes the contents under the lock, and performs the resulting actions after unlocking.
///
/// No continuation is resumed and no element is released under the lock, because either may run user code at once. An
/// executor may run the resumed task inside `resume`, and both that task and an element's `deinit` may call the
/// channel. Under the lock, such a call would deadlock.
///
/// Streams and subscriptions refer to the core and never to the channel object. They therefore don't keep that object
/// alive, and its release finishes the channel.
final class ChannelCore<Element: Sendable, Failure: Error>: Sendable {
  typealias Contents = ChannelContents<Element, Failure>

  private let contents: Lock<Contents>
  /// The number of calls of `send` and `finish`.
  ///
  /// It changes only under the lock, and may be read without the lock.
  private let progressCount = Atomic<Int>(0)

  /// Shows the thread sanitizer that a hand-off happens before the subscriber reads the element.
  private let handOffOrder = SanitizerOrder()

  /// A closure for ``noticeIfUnused()`` to call outside the lock, or `nil` if the core's creator doesn't need it.
  ///
  /// It may run more than once for the same departure of the last subscriber.
  private let onUnused: (@Sendable (ChannelCore) -> Void)?

  /// The token that counts the channel of an ``UnownedChannel`` as live, or `nil` for any other channel.
  ///
  /// The other channel types have a token of their own. The channel of an ``Upstream`` isn't counted.
  private let liveChannelToken: MulticastDiagnostics.LiveChannel?

  /// A closure that runs when the last reference to the core is released.
  private let onRelease: (@Sendable () -> Void)?

  init(
    replay: Int, isCounted: Bool = false, onUnused: (@Sendable (ChannelCore) -> Void)? = nil,
    onRelease: (@Sendable () -> Void)? = nil
  ) {
    contents = Lock(Contents(replay: replay))
    liveChannelToken = isCounted ? MulticastDiagnostics.LiveChannel() : nil
    self.onUnused = onUnused
    self.onRelease = onRelease
  }

  deinit {
    onRelease?()
  }

  /// Whether the channel's producer calls ``demand()`` and needs ``signalDemand()``.
  ///
  /// Only an ``Upstream`` has such a producer, and only an upstream creates its core with `onUnused`.
  var isPulled: Bool { onUnused != nil }

  /// Whether the channel has no subscribers and hasn't terminated.
  var isUnused: Bool { contents.withLock { !$0.state.hasTerminated && $0.state.subscriberCount == 0 } }

  var latest: Element? { contents.withLock { $0.latest } }
  var subscriberCount: Int { contents.withLock { $0.state.subscriberCount } }

  /// The newest element of the replay and the number of elements sent, read in one critical section.
  var versioned: (latest: Element?, version: Int) { contents.withLock { ($0.latest, $0.state.head) } }

  // MARK: - Sending

  @discardableResult
  func send(_ element: Element) -> SendResult {
    var released = Contents.Released()
    defer { released.release() }
    let resumptions = contents.withLock { contents in
      countProgress()
      return contents.send(element, releasing: &released)
    }
    guard let resumptions else { return .terminated }
    resume(resumptions, with: element)
    return .sent
  }

  /// Sends an element if `version` is still the number of elements sent, and returns `nil` otherwise.
  func send(_ element: Element, ifVersionIs version: Int) -> SendResult? {
    var released = Contents.Released()
    defer { released.release() }
    var isOutdated = false
    let resumptions = contents.withLock { contents in
      isOutdated = contents.state.head != version
      countProgress()
      return isOutdated ? nil : contents.send(element, releasing: &released)
    }
    guard let resumptions else { return isOutdated ? nil : .terminated }
    resume(resumptions, with: element)
    return .sent
  }

  /// Hands the element off to the waiters.
  ///
  /// Must not be called under the lock, because an executor may run the resumed task before `resume` returns.
  @inline(__always)
  private func resume(_ resumptions: ChannelState<Waiter>.Resumptions, with element: Element) {
    switch resumptions {
    case .none: break
    case .one(let waiter): waiter.resume(with: element, order: handOffOrder)
    case .many(let waiters): for waiter in waiters { waiter.resume(with: element, order: handOffOrder) }
    }
  }

  func finish(_ failure: Failure? = nil) {
    let waiters = contents.withLock { contents in
      countProgress()
      return contents.finish(failure)
    }
    for waiter in waiters { waiter.resume() }
  }

  func resetReplay() {
    var released = Contents.Released()
    defer { released.release() }
    contents.withLock { $0.resetReplay(releasing: &released) }
  }

  private func countProgress() {
    progressCount.store(progressCount.load(ordering: .relaxed) &+ 1, ordering: .releasing)
  }

  // MARK: - Reading

  /// A count that changes with each element sent and with the termination of the channel.
  var progress: Int { progressCount.load(ordering: .acquiring) }

  /// Registers a subscriber together with its replay.
  ///
  /// This must stay one critical section: with two, an element sent between them could be lost or delivered twice. The
  /// article *How the log works* explains this under *Registration and replay*.
  ///
  /// - Returns: The subscriber's id.
  func subscribe(_ policy: BufferingPolicy<Failure>) -> Int {
    contents.withLock { $0.subscribe(policy) }
  }

  /// Copies or moves a subscriber's next elements, at most `limit`, into uninitialized memory.
  func read(
    _ subscriber: Int, limit: Int, into target: ElementSlots<Element>, releasing released: inout Contents.Released
  ) -> ReadOutcome {
    contents.withLock { $0.read(subscriber, limit: limit, into: target, releasing: &released) }
  }

  /// Stores the waiter until the subscriber has something to read, or resumes it at once if the subscriber already has.
  func park(_ subscriber: Int, _ waiter: Waiter) {
    var released = Contents.Released()
    defer { released.release() }
    let isParked = contents.withLock { $0.park(subscriber, waiter, releasing: &released) }
    if !isParked { waiter.resume() }
  }

  /// Shows the thread sanitizer that the calling subscriber continues after the hand-off of its element.
  func showHandOffToSanitizer() { handOffOrder.acquire() }

  /// The error that the channel failed with.
  ///
  /// - Precondition: The channel has failed.
  var failure: Failure {
    @inline(never) get { contents.withLock { $0.failure! } }
  }

  func cancel(_ subscriber: Int) {
    var released = Contents.Released()
    defer { released.release() }
    for waiter in contents.withLock({ $0.cancel(subscriber, releasing: &released) }) { waiter.resume() }
    noticeIfUnused()
  }

  func remove(_ subscriber: Int) {
    var released = Contents.Released()
    defer { released.release() }
    contents.withLock { $0.remove(subscriber, releasing: &released) }
    noticeIfUnused()
  }

  /// Calls `onUnused` if the channel has no subscribers and hasn't terminated.
  func noticeIfUnused() {
    if let onUnused, isUnused { onUnused(self) }
  }

  func droppedCount(_ subscriber: Int) -> Int {
    contents.withLock { $0.state.droppedCount(subscriber) }
  }

  func countDropped(_ subscriber: Int, _ count: Int) {
    contents.withLock { $0.countDropped(subscriber, count) }
  }

  // MARK: - Demand

  /// Suspends until at least one subscriber would keep another element, or the calling task is cancelled.
  ///
  /// A subscriber doesn't keep an element that it would drop or that would overflow it. Only one task at a time may
  /// call this.
  func demand() async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        // `Task.isCancelled` covers a cancellation before this point. If the task is cancelled later, the handler takes
        // the lock after this section and finds the continuation.
        let isParked = contents.withLock { !Task.isCancelled && $0.parkProducer(continuation) }
        if !isParked { continuation.resume() }
      }
    } onCancel: {
      contents.withLock { $0.takeProducer() }?.resume()
    }
  }

  /// If a subscriber would keep another element, resumes the producer suspended in ``demand()``, if any.
  func signalDemand() {
    contents.withLock { $0.takeDemandedProducer() }?.resume()
  }
}
