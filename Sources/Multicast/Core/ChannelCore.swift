internal import Synchronization

/// The owner of a channel's lock: asks the contents what is to be done, and does it after unlocking.
///
/// Streams and subscriptions hold the core, never the channel, so that dropping the channel ends it.
final class ChannelCore<Element: Sendable, Failure: Error>: Sendable {
  typealias Contents = ChannelContents<Element, Failure>

  private let contents: Lock<Contents>
  /// Counts sends and the end.
  ///
  /// It changes only under the lock, and may be read without it.
  private let progressCount = Atomic<Int>(0)

  /// Orders a send before the subscribers that its element is handed off to.
  private let handOver = SanitizerOrder()

  /// Called, outside the lock, when the last subscriber has left; nil for a channel that does not mind.
  private let onUnused: (@Sendable (ChannelCore) -> Void)?

  /// Counts a channel that has no owner but its streams; `nil` where the owner counts itself.
  private let live: MulticastDiagnostics.LiveChannel?

  /// Called when nothing refers to the core any more.
  private let onRelease: (@Sendable () -> Void)?

  init(
    replay: Int, isCounted: Bool = false, onUnused: (@Sendable (ChannelCore) -> Void)? = nil,
    onRelease: (@Sendable () -> Void)? = nil
  ) {
    contents = Lock(Contents(replay: replay))
    live = isCounted ? MulticastDiagnostics.LiveChannel() : nil
    self.onUnused = onUnused
    self.onRelease = onRelease
  }

  deinit {
    onRelease?()
  }

  /// Whether a producer waits for ``demand()`` and is to be signalled.
  var isPulled: Bool { onUnused != nil }

  /// Whether the channel has not ended and has no subscribers.
  var isUnused: Bool { contents.withLock { !$0.state.hasEnded && $0.state.subscriberCount == 0 } }

  /// Runs `body` alone with the contents.
  func withContents<Result>(_ body: (inout Contents) -> Result) -> Result { contents.withLock(body) }

  var latest: Element? { contents.withLock { $0.latest } }
  var subscriberCount: Int { contents.withLock { $0.state.subscriberCount } }

  /// The newest element and how many were sent with it, both of one moment.
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

  /// Sends only if nothing was sent since `version`; else returns nil.
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

  /// Hands the element off, outside the lock: an executor may run the resumed task before `resume` returns.
  @inline(__always)
  private func resume(_ resumptions: ChannelState<Waiter>.Resumptions, with element: Element) {
    switch resumptions {
    case .none: break
    case .one(let waiter): waiter.resume(with: element, order: handOver)
    case .many(let waiters): for waiter in waiters { waiter.resume(with: element, order: handOver) }
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

  /// Differs from an earlier value if anything was sent since, or the channel ended.
  var progress: Int { progressCount.load(ordering: .acquiring) }

  func subscribe(_ policy: BufferingPolicy<Failure>) -> Int {
    contents.withLock { $0.subscribe(policy) }
  }

  /// Puts the next elements of a subscriber, at most `limit`, into uninitialised memory.
  func read(
    _ reader: Int, limit: Int, into target: ElementSlots<Element>, releasing released: inout Contents.Released
  ) -> ReadOutcome {
    contents.withLock { $0.read(reader, limit: limit, into: target, releasing: &released) }
  }

  /// Keeps the waiter until there is something for it, and resumes it at once when there is something already.
  func park(_ reader: Int, _ waiter: Waiter) {
    var released = Contents.Released()
    defer { released.release() }
    let isParked = contents.withLock { $0.park(reader, waiter, releasing: &released) }
    if !isParked { waiter.resume() }
  }

  /// To be called by a subscriber that an element was handed off to.
  func noticeHandOver() { handOver.acquire() }

  /// What failed the channel, which must have failed.
  var failure: Failure {
    @inline(never) get { contents.withLock { $0.failure! } }
  }

  func cancel(_ reader: Int) {
    var released = Contents.Released()
    defer { released.release() }
    for waiter in contents.withLock({ $0.cancel(reader, releasing: &released) }) { waiter.resume() }
    noticeIfUnused()
  }

  func remove(_ reader: Int) {
    var released = Contents.Released()
    defer { released.release() }
    contents.withLock { $0.remove(reader, releasing: &released) }
    noticeIfUnused()
  }

  /// Calls `onUnused` if the last subscriber has left.
  func noticeIfUnused() {
    if let onUnused, isUnused { onUnused(self) }
  }

  func droppedCount(_ reader: Int) -> Int {
    contents.withLock { $0.state.droppedCount(reader) }
  }

  func countDropped(_ reader: Int, _ count: Int) {
    contents.withLock { $0.countDropped(reader, count) }
  }
}
