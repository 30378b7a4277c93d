/// A value that is loaded in pages: elements in the server's order, and the cursor of the next page.
///
/// ``Paged`` is a ready-made conforming type.
public protocol PagedValue: Codable, Equatable, Sendable {
  /// The type of the elements.
  associatedtype Element: Identifiable where Element.ID: Sendable

  /// The elements of one page, or of several adjacent pages.
  ///
  /// The repository stores no two with the same id.
  var elements: [Element] { get set }

  /// The cursor of the next page; `nil` if there is none.
  var nextCursor: String? { get set }
}

/// A source whose values are loaded in pages.
///
/// ``SyncedRepository/refresh(_:)`` and ``SyncedRepository/reload(_:)`` fetch the newest page and join it to the stored
/// pages. ``SyncedRepository/loadMore(_:)`` fetches the page after the last stored element, and
/// ``SyncedRepository/reloadLoadedPages(_:)`` fetches every loaded page again. The stored elements are always a
/// contiguous part of the server's list, except for elements that mutations of this device inserted.
///
/// A fetch doesn't shorten a list that is as long on the server, unless an element moves to another page while the
/// pages are fetched. If the stored pages can't follow the newest page, because more than a page was inserted, or an
/// element was deleted or has moved, further pages are fetched until they can, or until as many elements were fetched
/// as were stored. That is at most one request for each loaded page.
///
/// An element that the server returns twice counts once. A page without a new element is skipped. After 20 such pages
/// in a row, the call ends, and the stored elements stay. If such pages have a cursor that leads back to one of them,
/// the list ends there; see ``RepositoryEvent/endlessPages(key:)``.
public protocol PagedSource: RepositorySource where Value: PagedValue {
  // Redeclared, so that the types are inferred from `fetch(_:after:limit:)`.
  associatedtype Key
  associatedtype Value
  associatedtype Failure

  /// Fetches a page.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - cursor: The cursor of the page, which is the ``PagedValue/nextCursor`` of the page before it; `nil` for the
  ///     newest page.
  ///   - limit: The maximum number of elements in the page.
  /// - Returns: Only the elements of the page, and the cursor of the next one.
  func fetch(_ key: Key, after cursor: String?, limit: Int) async throws(Failure) -> Value

  /// Whether ``RepositorySource/fetch(_:)`` fetches the complete list with one request.
  ///
  /// If it is `true`, the repository calls that function when a fetched value must replace all stored pages. Otherwise,
  /// it fetches as many elements as are loaded, page by page, and never calls that function. The default implementation
  /// returns `false`.
  var fetchesCompleteLists: Bool { get }
}

extension PagedSource {
  /// Returns `false`.
  public var fetchesCompleteLists: Bool { false }

  /// Fetches the list as a single page.
  public func fetch(_ key: Key) async throws(Failure) -> Value {
    try await fetch(key, after: nil, limit: .max)
  }
}
