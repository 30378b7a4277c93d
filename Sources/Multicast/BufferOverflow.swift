/// The error thrown to a subscriber whose bounded buffer was full when another element arrived.
///
/// Only a subscriber with the ``BufferingPolicy/error(_:_:)`` policy receives this error. To continue reading,
/// subscribe again. To prevent the error, read faster, raise the capacity, or choose a policy that drops elements.
public struct BufferOverflow: Error, Sendable, Hashable, CustomStringConvertible {
  /// The number of elements in the subscriber's buffer when it overflowed, or 0 if the subscriber had no buffer.
  public let capacity: Int

  /// Creates the error of a buffer that held `capacity` elements.
  public init(capacity: Int) {
    self.capacity = capacity
  }

  /// A message that states the cause and the possible remedies.
  public var description: String {
    let cause =
      capacity == 0
      ? "it has no buffer, and wasn't suspended in next() when an element arrived."
      : "its buffer of \(capacity == 1 ? "1 element" : "\(capacity) elements") was full when another element arrived."
    return "The subscriber fell behind: \(cause) "
      + "Read faster, raise the capacity, or choose a policy that drops elements."
  }
}
