/// The error of a subscriber whose bounded buffer was full when one more element arrived.
///
/// A subscriber meets it only where it chose the ``BufferingPolicy/error(_:_:)`` policy. To go on, subscribe again; to
/// avoid it, read faster, raise the capacity, or choose a policy that drops.
public struct BufferOverflow: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many elements the subscriber's buffer held when it overflowed, in elements.
  public let capacity: Int

  /// Creates the error of a buffer that held `capacity` elements.
  public init(capacity: Int) {
    self.capacity = capacity
  }

  /// Says what happened and what helps.
  public var description: String {
    "The reader fell behind: its buffer of \(capacity) elements was full when another arrived. "
      + "Read faster, raise the capacity, or choose a policy that drops elements."
  }
}
