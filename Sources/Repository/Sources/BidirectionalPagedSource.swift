/// A value that is loaded in pages, and may begin in the middle of the server's list.
///
/// ``Paged`` is a ready-made conforming type.
public protocol BidirectionalPagedValue: PagedValue {
  /// The cursor of the page before the first element; `nil` if there is none, because the first element is the newest
  /// one.
  var previousCursor: String? { get set }
}

/// A source whose pages can be fetched in both directions.
///
/// ``SyncedRepository/loadPrevious(_:)`` fetches the page before the first stored element.
/// ``RepositoryConfiguration/maximumPages`` limits the length of a list: elements that the user has scrolled past are
/// dropped at one end, and fetched again when the user scrolls back.
///
/// While there is a previous page, ``SyncedRepository/refresh(_:)`` and ``SyncedRepository/reload(_:)`` fetch the first
/// stored page again instead of the newest one, so that the list stays in place. If the server has refused to return
/// that page, or the page after the last stored element, both functions fetch the newest page.
/// ``SyncedRepository/loadNewest(_:)`` returns to the newest page.
///
/// ```swift
/// struct MessagesSource: BidirectionalPagedSource {
///   let client: any MessagesClient
///   let name = "messages"
///
///   func fetch(_ room: String, after cursor: String?, limit: Int) async throws(ClientError) -> Paged<Message> {
///     try await client.messages(in: room, after: cursor, limit: limit)
///   }
///
///   func fetch(_ room: String, before cursor: String, limit: Int) async throws(ClientError) -> Paged<Message> {
///     try await client.messages(in: room, before: cursor, limit: limit)
///   }
///
///   func cursor(of message: Message) -> String { message.id }
/// }
/// ```
public protocol BidirectionalPagedSource: PagedSource where Value: BidirectionalPagedValue {
  /// Fetches the page that ends before an element.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - cursor: The cursor of the element that follows the page: the element's ``cursor(of:)``, or the
  ///     ``BidirectionalPagedValue/previousCursor`` of a value that begins with the element.
  ///   - limit: The maximum number of elements in the page. They immediately precede the element of the cursor.
  /// - Returns: Only the elements of the page, in the server's order.
  func fetch(_ key: Key, before cursor: String, limit: Int) async throws(Failure) -> Value

  /// Returns the cursor of an element in the server's list.
  ///
  /// The page after the cursor begins directly after the element, and the page before the cursor ends directly before
  /// the element.
  func cursor(of element: Value.Element) -> String
}
