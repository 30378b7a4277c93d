/// A broadcast to any number of subscribers, implemented by each compared system except the bare continuations.
///
/// The measured loops are generic over this protocol and specialized for each system, and they read through the
/// system's own iterator. The measurements therefore include no overhead of this abstraction.
protocol Broadcast<Element>: Sendable {
  associatedtype Element: Payload
  associatedtype Elements: AsyncSequence where Elements.Element == Element

  /// The name of the system in the tables.
  static var label: String { get }

  /// Returns the number of sends in a run of this system: `count`, or fewer if the system is slow.
  ///
  /// Figures from runs of different lengths are comparable, because they are given for each send or delivery.
  /// OpenCombine is an exception: short runs make its figures better.
  static func affordable(_ count: Int, subscribers: Int) -> Int

  func send(_ element: Element)

  func finish()

  /// Returns the elements for one subscriber, which is registered when `makeAsyncIterator()` has returned.
  func subscribe() -> Elements
}

extension Broadcast {
  static func affordable(_ count: Int, subscribers: Int) -> Int { count }
}

/// A broadcast that counts its subscribers, and can be created with a replay of its last element.
protocol ReplayingBroadcast<Element>: Broadcast {
  var subscriberCount: Int { get }
}

/// A broadcast whose subscribers have bounded buffers, and which counts the elements that they drop.
///
/// A subscriber is registered when ``Broadcast/subscribe()`` has returned, before an iterator is made.
protocol BoundedBroadcast<Element>: Broadcast where Elements: Sendable {
  /// The name of the buffers' policy.
  var policy: String { get }

  /// Returns the total number of elements that the subscribers dropped.
  ///
  /// - Parameter subscribers: The sequences of all subscribers, as ``Broadcast/subscribe()`` returned them.
  func droppedCount(_ subscribers: [Elements]) -> Int
}
