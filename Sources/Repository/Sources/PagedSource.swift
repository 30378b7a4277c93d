/// A value that comes in pages: elements in the server's order, and where the next page begins.
///
/// ``Paged`` is one that is ready to use.
public protocol PagedValue: Codable, Equatable, Sendable {
  /// One of the things in the pages.
  associatedtype Element: Identifiable where Element.ID: Sendable

  /// The elements of all pages that were fetched so far, without duplicates.
  var elements: [Element] { get set }

  /// Where the next page begins; `nil` if there is none.
  var nextCursor: String? { get set }
}

/// A source whose values come in pages.
///
/// ``SyncedRepository/refresh(_:)`` and ``SyncedRepository/reload(_:)`` fetch the newest page and join it to the pages
/// that are stored. ``SyncedRepository/loadMore(_:)`` fetches the page behind the last stored element. What is stored is
/// always a stretch of the server's list without a gap, except for the elements that changes of this device have put
/// there. A newest page that ends with such an element replaces what is stored, because other elements may lie behind it.
public protocol PagedSource: RepositorySource where Value: PagedValue {
  // Declared again, so that they are inferred from the page's `fetch`.
  associatedtype Key
  associatedtype Value
  associatedtype Failure

  /// Fetches a page.
  ///
  /// - Parameters:
  ///   - key: Whose page.
  ///   - cursor: Where the page begins, as ``PagedValue/nextCursor`` of the page before it says; `nil` for the newest.
  ///   - limit: The most elements the page may have.
  /// - Returns: The elements of the page alone.
  func fetch(_ key: Key, after cursor: String?, limit: Int) async throws(Failure) -> Value
}

extension PagedSource {
  /// Fetches the newest page, of 20 elements at most.
  ///
  /// The repository calls it where a value must replace all that is stored, because a change can't be found on the newest
  /// page alone. Implement it to fetch more at once.
  public func fetch(_ key: Key) async throws(Failure) -> Value {
    try await fetch(key, after: nil, limit: 20)
  }
}
