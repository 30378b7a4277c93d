#if PostgreSQL
  /// Decides until when a call waits for the server.
  ///
  /// A server can fall silent: its process or a proxy hangs, or a packet is lost. The connection then stays open, so only
  /// the time shows it. One limit for the whole call would end long calls of a server that works, such as an erasure of
  /// 100,000 values or a commit of 1 GB. One limit for each exchange would let a call of five exchanges take five times
  /// as long. So both are combined:
  ///
  /// - A call ends with its timeout, and a grace. The grace is needed because the server itself ends a wait for a lock
  ///   after the timeout, and its error must still arrive.
  /// - A large call, of more than ``largeStepCount`` steps, ends only if nothing arrives for the timeout and a grace. A
  ///   step is an answer, or a part of a request or of an answer that doesn't fit into the buffers.
  /// - A server needs time for the bytes that it gets, in proportion to them.
  ///
  /// A pure value: methods record what has happened, and ``limit(at:)`` decides.
  struct PostgreSQLDeadline {
    /// The time after the timeout in which an answer may still arrive.
    static let grace = Duration.milliseconds(500)
    /// The number of steps after which a call counts as large.
    static let largeStepCount = 32
    /// The number of bytes that even a slow server processes in a millisecond: 16 MiB in a second.
    private static let bytesPerMillisecond = 16_777

    private let timeout: Duration
    private let end: ContinuousClock.Instant
    private var stepCount = 0
    private var byteCount = 0

    /// Creates the deadline of a call.
    ///
    /// - Parameters:
    ///   - timeout: The timeout of the call.
    ///   - start: The time at which the caller began to wait.
    init(after timeout: Duration, from start: ContinuousClock.Instant = .now) {
      // Later times can't be computed.
      self.timeout = min(max(timeout, .zero), .seconds(Int32.max))
      end = start + self.timeout
    }

    /// The time until the timeout; zero after it.
    func remaining(at now: ContinuousClock.Instant = .now) -> Duration { max(.zero, end - now) }

    /// Whether an exchange that begins now would be the last one, because the timeout has passed.
    func hasPassed(at now: ContinuousClock.Instant = .now) -> Bool { now >= end }

    /// The time at which the grace ends, after which the call makes no new attempt.
    var graceEnd: ContinuousClock.Instant { end + Self.grace }

    /// Whether the call is large, so that each further step extends the limit.
    var isLarge: Bool { stepCount > Self.largeStepCount }

    /// Records an answer, or a part of a request or of an answer.
    mutating func recordStep() { stepCount += 1 }

    /// Records bytes that the server must process in this call.
    mutating func recordWork(byteCount: Int) { self.byteCount += byteCount }

    /// Returns the time until which to wait for the next step.
    ///
    /// - Parameter now: The time of the last step, or of the request.
    func limit(at now: ContinuousClock.Instant) -> ContinuousClock.Instant {
      (isLarge ? max(end, now + timeout) : max(end, now)) + Self.grace
        + .milliseconds(byteCount / Self.bytesPerMillisecond)
    }
  }
#endif
