/// A value that comes in pages, and may begin in the middle of the server's list.
///
/// ``Paged`` is one that is ready to use.
public protocol BidirectionalPagedValue: PagedValue {
  /// Where the page before the first element ends; `nil` if there is none, so that the first element is the newest.
  var previousCursor: String? { get set }
}

/// A source whose pages can be fetched in both directions.
///
/// ``SyncedRepository/loadPrevious(_:)`` fetches the page before the first stored element. With
/// ``RepositoryConfiguration/maximumPages`` a list stays as short as what the user can see of it: what is scrolled past is
/// dropped at one end, and fetched again when the user comes back.
///
/// While there is a previous page, ``SyncedRepository/refresh(_:)`` and ``SyncedRepository/reload(_:)`` fetch the first
/// stored page again and not the newest one, so that the list stays where it is. ``SyncedRepository/loadNewest(_:)`` goes
/// back to the newest page.
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
  ///   - key: Whose page.
  ///   - cursor: The ``cursor(of:)`` of the element that follows the page.
  ///   - limit: The most elements the page may have: the last ones before the element.
  /// - Returns: The elements of the page alone, in the server's order.
  func fetch(_ key: Key, before cursor: String, limit: Int) async throws(Failure) -> Value

  /// Returns the cursor of an element of the server: the page after it begins with what follows the element, and the page
  /// before it ends with what is in front of it.
  func cursor(of element: Value.Element) -> String
}
