/// A broadcast to any number of readers, as one of the compared systems does it.
///
/// The measured loops are generic over it and specialised for each system, and read through the system's own iterator:
/// nothing stands between the clock and the system.
protocol Broadcast<Element>: Sendable {
  associatedtype Element: Payload
  associatedtype Elements: AsyncSequence where Elements.Element == Element

  /// How the tables call the system.
  static var label: String { get }

  /// The part of `count` sends that fits into a short run; results are given for each send or delivery.
  static func affordable(_ count: Int, readers: Int) -> Int

  func send(_ element: Element)

  func finish()

  /// What one reader reads; the reader is registered when `makeAsyncIterator()` has returned.
  func subscribe() -> Elements
}

extension Broadcast {
  static func affordable(_ count: Int, readers: Int) -> Int { count }
}

/// A broadcast that gives its last element to a new reader.
protocol ReplayingBroadcast<Element>: Broadcast {
  var readerCount: Int { get }
}

/// A broadcast whose readers' buffers are bounded, and that knows what they dropped.
protocol BoundedBroadcast<Element>: Broadcast where Elements: Sendable {
  /// How the buffers are bounded.
  var policy: String { get }

  /// How many elements were dropped for these readers, who are all there are.
  func droppedCount(_ readers: [Elements]) -> Int
}
