/// A value that a store keeps in parts, so that a small change of a large value writes little.
///
/// The value says how it comes apart: a head, and elements in order. A store keeps the elements in chunks of about 64,
/// each by itself. A save writes the head and the chunks that changed, in one commit. A load joins them, and observers
/// get the whole value, as with any other.
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
/// - **Migration**: A value that was stored whole is read as before, and its next save stores it in parts. For a type
///   that is ``VersionedValue`` too, the migrations of a value that was stored in parts get the JSON
///   `{"elements":[…],"head":…}`, and the result of the last one may have that form or the whole value's own. A type that
///   no longer conforms needs a schema step, which gets the same JSON.
/// - Complexity: A save compares each element with the stored one, encodes those that changed, and writes the chunks they
///   are in. A change of one of *n* elements writes one chunk and a list of *n* / 64 short ids.
public protocol PartitionedValue: Codable, Equatable, Sendable {
  /// Everything that isn't in the elements.
  associatedtype Head: Codable & Equatable & Sendable

  /// One of many similar pieces of the value.
  associatedtype Element: Codable & Equatable & Sendable

  /// Joins a value.
  init(head: Head, elements: [Element])

  /// Everything that isn't in the elements.
  var head: Head { get }

  /// The elements, in order.
  var elements: [Element] { get }

  /// Returns the number of elements at the start of two runs that are equal in both.
  ///
  /// A store compares the elements of a value by this function alone. The default implementation uses `==`. It is compiled
  /// in the module of the type, for that type, so it calls `==` directly; a store, which is compiled before, could only
  /// call it by way of copies of the elements, which takes several times as long.
  ///
  /// - Complexity: O(*n*) for the *n* elements of the shorter run.
  static func equalPrefixCount(of left: Span<Element>, and right: Span<Element>) -> Int
}

extension PartitionedValue {
  /// Compares by `==`.
  @inlinable
  public static func equalPrefixCount(of left: Span<Element>, and right: Span<Element>) -> Int {
    let count = min(left.count, right.count)
    var index = 0
    while index < count, left[index] == right[index] { index += 1 }
    return index
  }
}
