/// A value that a store keeps in parts, so that a small change of a large value writes little.
///
/// The value consists of a head and an ordered list of elements. A store divides the elements into chunks of about 64
/// elements, and stores each chunk separately. A save writes the head and the changed chunks, in one commit. A load
/// joins all of them, and observers receive the whole value, as with any other type.
///
/// ```swift
/// struct Inbox: PartitionedValue {
///   var owner: String
///   var messages: [String]
///
///   init(head: String, elements: [String]) { (owner, messages) = (head, elements) }
///   var head: String { owner }
///   var elements: [String] { messages }
/// }
/// ```
///
/// - **Round trip**: `Self(head: value.head, elements: value.elements)` equals `value`.
/// - **Migration**: A value that was stored whole is still read, and its next save stores it in parts. If the type is a
///   ``VersionedValue`` too, the migrations of a value that was stored in parts receive the JSON
///   `{"elements":[…],"head":…}`. The last migration may return either that form or the JSON of the value stored whole.
///   A type that no longer conforms to `PartitionedValue` needs a migration, which receives the same JSON.
/// - Complexity: A save compares each element with the stored one, encodes the changed ones, and writes their chunks. A
///   change of one of *n* elements writes one chunk and the short ids of all *n* / 64 chunks.
public protocol PartitionedValue: Codable, Equatable, Sendable {
  /// The part of the value that isn't in its elements.
  associatedtype Head: Codable & Equatable & Sendable

  /// An element of the value.
  associatedtype Element: Codable & Equatable & Sendable

  /// Creates a value from its head and its elements.
  init(head: Head, elements: [Element])

  /// The part of the value that isn't in its elements.
  var head: Head { get }

  /// The elements, in order.
  var elements: [Element] { get }

  /// Returns the length of the longest common prefix of two runs of elements.
  ///
  /// A store compares the elements of a value only with this function. The default implementation uses `==`. The
  /// compiler specializes it in the module that declares the conforming type, so it calls the `==` of `Element`
  /// directly. Generic code in the module of the store would have to copy each element to compare it, which takes
  /// several times as long.
  ///
  /// - Complexity: O(*n*) for the *n* elements of the shorter run.
  static func equalPrefixCount(of left: Span<Element>, and right: Span<Element>) -> Int
}

extension PartitionedValue {
  /// Compares the elements with `==`.
  @inlinable
  public static func equalPrefixCount(of left: Span<Element>, and right: Span<Element>) -> Int {
    let count = min(left.count, right.count)
    var index = 0
    while index < count, left[index] == right[index] { index += 1 }
    return index
  }
}
