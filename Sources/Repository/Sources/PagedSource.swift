/// A value that is loaded in pages: elements in the server's order, and the cursor of the next page.
///
/// ``Paged`` is a ready-made conforming type.
public protocol PagedValue: Codable, Equatable, Sendable {
  /// The type of the elements.
  associatedtype Element: Identifiable where Element.ID: Sendable

  /// The elements of one page, or of several adjacent pages, without duplicates.
  var elements: [Element] { get set }

  /// The cursor of the next page; `nil` if there is none.
  var nextCursor: String? { get set }
}

/// A source whose values are loaded in pages.
///
/// ``SyncedRepository/refresh(_:)`` and ``SyncedRepository/reload(_:)`` fetch the newest page and join it to the stored
/// pages. ``SyncedRepository/loadMore(_:)`` fetches the page after the last stored element. The stored elements are
/// always a contiguous part of the server's list, except for elements that mutations of this device inserted. If the
/// last element of the newest page was inserted by such a mutation, the page replaces the stored pages, because the
/// server's list may continue differently after that element.
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
}

extension PagedSource {
  /// Fetches the newest page, with at most 20 elements.
  ///
  /// The repository calls this function when a fetched value must replace all stored pages. For example, if the reply
  /// to a mutation can't be stored, any of these pages may lack the mutation's change. Implement this function to fetch
  /// more elements.
  public func fetch(_ key: Key) async throws(Failure) -> Value {
    try await fetch(key, after: nil, limit: 20)
  }
}
