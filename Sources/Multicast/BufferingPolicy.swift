/// The capacity of a subscriber's buffer, and its behavior when it is full.
///
/// Each subscriber has a buffer of its own. A full buffer never affects the sender, the replay, or another subscriber.
/// The exception is a ``MulticastSequence``, which requests the next element of its base only while at least one
/// subscriber would keep that element. A subscriber that is suspended in `next()` receives an element by a direct
/// hand-off, which doesn't use the buffer.
///
/// | when `3` arrives at the full buffer `[1, 2]` | elements read | here | Combine | Kotlin | `AsyncStream` |
/// | --- | --- | --- | --- | --- | --- |
/// | discard the oldest element | `[2, 3]` | ``dropOldest(_:)`` | `dropOldest` | `DROP_OLDEST` | `bufferingNewest` |
/// | discard the incoming element | `[1, 2]` | ``dropNewest(_:)`` | `dropNewest` | `DROP_LATEST` | `bufferingOldest` |
/// | replace the newest element | `[1, 3]` | ``replaceNewest(_:)`` | – | – | – |
/// | fail the subscriber | `[1, 2]`, then the error | ``error(_:_:)`` | `customError` | – | – |
///
/// The effective capacity is the larger of the policy's capacity and the channel's replay, so a replay never overflows
/// a buffer.
public struct BufferingPolicy<Failure: Error>: Sendable {
  enum Overflow: Sendable {
    case dropOldest
    case dropNewest
    case replaceNewest
    case error(@Sendable (BufferOverflow) -> Failure)
  }

  let capacity: Int
  let overflow: Overflow

  /// Whether a full buffer keeps its oldest element, and discards a newer one instead.
  var keepsOldest: Bool { if case .dropOldest = overflow { false } else { true } }

  /// Whether the policy is ``unbounded``; `false` for a policy that keeps the oldest elements, whatever its capacity.
  var isUnbounded: Bool { capacity == .max && !keepsOldest }

  /// Returns the error that an ``error(_:_:)`` policy makes of an overflow.
  func makeError(_ bufferOverflow: BufferOverflow) -> Failure {
    guard case .error(let makeFailure) = overflow else {
      preconditionFailure("Only the error policy makes an error of an overflow.")
    }
    return makeFailure(bufferOverflow)
  }

  private init(capacity: Int, minimum: Int = 1, overflow: Overflow) {
    precondition(
      capacity >= minimum, "BufferingPolicy: 'capacity' must be at least \(minimum), but is \(capacity).")
    self.capacity = capacity
    self.overflow = overflow
  }

  /// Keeps every element until the subscriber reads it.
  ///
  /// No element is dropped, so memory grows with the subscriber's lag.
  public static var unbounded: Self { Self(capacity: .max, overflow: .dropOldest) }

  /// Keeps only the newest element, like ``dropOldest(_:)`` with capacity 1.
  ///
  /// Use it for state: a subscriber always receives the last value in the end, however slowly it reads.
  public static var latest: Self { .dropOldest(1) }

  /// Keeps the newest elements: a full buffer discards its oldest element to make room for the incoming one.
  ///
  /// - Parameter capacity: The maximum number of buffered elements, which must be at least 1.
  public static func dropOldest(_ capacity: Int) -> Self {
    Self(capacity: capacity, overflow: .dropOldest)
  }

  /// Keeps the oldest elements: a full buffer discards the incoming element.
  ///
  /// - Parameter capacity: The maximum number of buffered elements, which must be at least 1.
  public static func dropNewest(_ capacity: Int) -> Self {
    Self(capacity: capacity, overflow: .dropNewest)
  }

  /// Keeps the oldest elements and the newest one: a full buffer replaces its last element with the incoming one.
  ///
  /// - Parameter capacity: The maximum number of buffered elements, which must be at least 1.
  public static func replaceNewest(_ capacity: Int) -> Self {
    Self(capacity: capacity, overflow: .replaceNewest)
  }

  /// Fails the subscriber when an element arrives while its buffer is full.
  ///
  /// That element is discarded and counted as dropped, and the subscriber accepts no further elements. It still reads
  /// its backlog; then its `next()` throws the error once, and returns `nil` on every later call. Other subscribers,
  /// the replay and the sender are not affected.
  ///
  /// With capacity 0 on a channel without replay, the subscriber has no buffer. It receives an element only if it is
  /// suspended in `next()` when the element is sent. Any other element fails it, such as one that is sent before the
  /// first call of `next()`, or while the body of its loop runs.
  ///
  /// - Parameters:
  ///   - capacity: The maximum number of buffered elements, which must be at least 0.
  ///   - makeError: A closure that returns the error to throw. It runs at most once for each subscriber, in the
  ///     subscriber's `next()`, outside any lock.
  public static func error(_ capacity: Int, _ makeError: @escaping @Sendable (BufferOverflow) -> Failure) -> Self {
    Self(capacity: capacity, minimum: 0, overflow: .error(makeError))
  }
}

extension BufferingPolicy where Failure == BufferOverflow {
  /// Fails the subscriber with a ``BufferOverflow`` when an element arrives while its buffer is full.
  ///
  /// - Parameter capacity: The maximum number of buffered elements, which must be at least 0. See
  ///   ``error(_:_:)`` for capacity 0.
  public static func error(_ capacity: Int) -> Self {
    .error(capacity) { $0 }
  }
}

extension BufferingPolicy where Failure == any Error {
  /// Fails the subscriber with a ``BufferOverflow`` when an element arrives while its buffer is full.
  ///
  /// - Parameter capacity: The maximum number of buffered elements, which must be at least 0. See
  ///   ``error(_:_:)`` for capacity 0.
  public static func error(_ capacity: Int) -> Self {
    .error(capacity) { $0 }
  }
}

extension BufferingPolicy: CustomStringConvertible {
  /// The name and the capacity of the policy, such as `dropOldest(64)`, or `unbounded`.
  public var description: String {
    switch overflow {
    case .dropOldest where capacity == .max: "unbounded"
    case .dropOldest: "dropOldest(\(capacity))"
    case .dropNewest: "dropNewest(\(capacity))"
    case .replaceNewest: "replaceNewest(\(capacity))"
    case .error: "error(\(capacity))"
    }
  }
}
