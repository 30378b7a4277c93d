/// What a subscriber's buffer does while the subscriber is busy.
///
/// A buffer belongs to one subscriber: a full one never touches the sender, the replay, or another subscriber. A
/// subscriber that is suspended in `next()` gets the element by a direct hand-off, and its buffer is not used.
///
/// | With capacity 2, `[1, 2]` buffered, then `3` | buffer | here | Combine | Kotlin | `AsyncStream` |
/// | --- | --- | --- | --- | --- | --- |
/// | the oldest goes | `[2, 3]` | ``dropOldest(_:)`` | `dropOldest` | `DROP_OLDEST` | `bufferingNewest` |
/// | the incoming goes | `[1, 2]` | ``dropNewest(_:)`` | `dropNewest` | `DROP_LATEST` | `bufferingOldest` |
/// | the newest gives way | `[1, 3]` | ``replaceNewest(_:)`` | – | – | – |
/// | the reader fails | `[1, 2]`, then the error | ``error(_:_:)`` | `customError` | – | – |
///
/// A buffer holds at least a channel's replay: the effective capacity is the larger of the two, so that a replay never
/// overflows.
public struct BufferingPolicy<Failure: Error>: Sendable {
  enum Overflow: Sendable {
    case dropOldest
    case dropNewest
    case replaceNewest
    case error(@Sendable (BufferOverflow) -> Failure)
  }

  let capacity: Int
  let overflow: Overflow

  /// Whether the beginning of a backlog is kept, and what comes later may find no place.
  var keepsOldest: Bool { if case .dropOldest = overflow { false } else { true } }

  var isUnbounded: Bool { capacity == .max && !keepsOldest }

  /// Makes the error of an ``error(_:_:)`` policy.
  func makeError(_ overflow: BufferOverflow) -> Failure {
    guard case .error(let makeError) = self.overflow else {
      preconditionFailure("Only a reader with an error policy overflows.")
    }
    return makeError(overflow)
  }

  private init(capacity: Int, overflow: Overflow) {
    precondition(capacity >= 1, "BufferingPolicy: 'capacity' must be at least 1, but is \(capacity).")
    self.capacity = capacity
    self.overflow = overflow
  }

  /// Keeps every element until it is read.
  ///
  /// Nothing is dropped, so memory grows with the subscriber's lag.
  public static var unbounded: Self { Self(capacity: .max, overflow: .dropOldest) }

  /// Keeps the newest element only, as ``dropOldest(_:)`` with capacity 1.
  ///
  /// A subscriber of state converges on the last value, whatever its pace.
  public static var latest: Self { .dropOldest(1) }

  /// Keeps the newest elements: a full buffer discards its oldest to make room.
  ///
  /// - Parameter capacity: How many elements wait at most. At least 1, or the program stops with a message.
  public static func dropOldest(_ capacity: Int) -> Self {
    Self(capacity: capacity, overflow: .dropOldest)
  }

  /// Keeps the oldest elements: a full buffer discards what arrives.
  ///
  /// - Parameter capacity: How many elements wait at most. At least 1, or the program stops with a message.
  public static func dropNewest(_ capacity: Int) -> Self {
    Self(capacity: capacity, overflow: .dropNewest)
  }

  /// Keeps the oldest elements and the very newest: a full buffer discards its newest to make room for what arrives.
  ///
  /// - Parameter capacity: How many elements wait at most. At least 1, or the program stops with a message.
  public static func replaceNewest(_ capacity: Int) -> Self {
    Self(capacity: capacity, overflow: .replaceNewest)
  }

  /// Ends the subscriber with an error at the first element that finds the buffer full.
  ///
  /// That element is discarded and counted as dropped. The subscriber still reads what it had, then its `next()` throws
  /// the error once, then returns nil for ever. Other subscribers, the replay and the sender notice nothing.
  ///
  /// - Parameters:
  ///   - capacity: How many elements wait at most. At least 1, or the program stops with a message.
  ///   - makeError: Makes the error. It runs once, in the subscriber's `next()`, outside any lock.
  public static func error(_ capacity: Int, _ makeError: @escaping @Sendable (BufferOverflow) -> Failure) -> Self {
    Self(capacity: capacity, overflow: .error(makeError))
  }
}

extension BufferingPolicy where Failure == BufferOverflow {
  /// Ends the subscriber with a ``BufferOverflow`` at the first element that finds the buffer full.
  ///
  /// - Parameter capacity: How many elements wait at most. At least 1, or the program stops with a message.
  public static func error(_ capacity: Int) -> Self {
    .error(capacity) { $0 }
  }
}

extension BufferingPolicy where Failure == any Error {
  /// Ends the subscriber with a ``BufferOverflow`` at the first element that finds the buffer full.
  ///
  /// - Parameter capacity: How many elements wait at most. At least 1, or the program stops with a message.
  public static func error(_ capacity: Int) -> Self {
    .error(capacity) { $0 }
  }
}

extension BufferingPolicy: CustomStringConvertible {
  /// The policy as it is written: `dropOldest(64)`.
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
