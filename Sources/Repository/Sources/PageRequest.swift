/// The part of a list that one load fetches, in one page or in several.
enum PageRequest {
  /// As many elements as are loaded.
  ///
  /// They begin with the newest one or, if `first` isn't `nil`, with the page that `first` describes.
  case loaded(first: FirstPage?)
  case newest
  case next(after: String)
  /// The page before the first stored one.
  case previous(before: String)
  /// The first stored page.
  case first(FirstPage)

  /// The first `count` stored elements; the cursor is that of the element after them.
  struct FirstPage {
    let cursor: String
    let count: Int
  }
}

/// A load of a list.
struct PageLoad<Key: Sendable, Value: Sendable, Failure: Error>: Sendable {
  let key: Key
  let pageSize: Int
  /// Whether the length of the stored list is limited.
  let hasMaximumCount: Bool
  /// The stored value when the load begins.
  let stored: Value?
  /// The stored value as it was fetched; `nil` if no mutation has changed it since.
  let storedAsFetched: Value?
  /// The value that observers see when the load begins, which may have more elements than the stored one.
  let visible: Value?
  /// The cursor for which the server refused to return the next page, if it did.
  let refusedCursor: String?
  let isRefusal: @Sendable (Failure) -> Bool
  let isWanted: @Sendable () -> Bool
}

/// The elements that a load has fetched, in the form of one page.
struct FetchedPages<Value: Sendable>: Sendable {
  let value: Value
  /// Whether the load has ended early, because too many pages had no new element.
  let isGivenUp: Bool
  /// Whether the list was ended here, because its pages would never have ended.
  ///
  /// The server returned no new element, and a cursor that it had returned before.
  let isEndless: Bool
}
