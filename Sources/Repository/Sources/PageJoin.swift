/// Joins fetched pages to stored ones, so that the stored elements are a contiguous part of the server's list, except
/// for elements that mutations of this device inserted.
enum PageJoin {
  /// Returns the newest page, followed by the stored elements after the page's last element.
  ///
  /// Returns `nil` in each of these cases:
  /// - Nothing is stored, or the page is empty.
  /// - The page is the last one of the server's list, so no elements follow it.
  /// - The page's last element isn't stored, so there may be a gap between the page and the stored elements.
  /// - The page's last element is stored, but not at the server's position, because a mutation of this device inserted
  ///   it.
  /// - The page lacks an element that is stored before the page's last element. The missing element may have moved
  ///   anywhere in the server's list.
  /// - The page includes the last stored element, or the server refused to return the page after that element. Then
  ///   there is no usable cursor after the stored elements that the page lacks.
  ///
  /// - Parameters:
  ///   - page: The newest page.
  ///   - stored: The stored value.
  ///   - storedAsFetched: The stored value as it was fetched; `nil` if no mutation has changed it since.
  ///   - refusedCursor: The cursor for which the server refused to return the next page, if it did.
  /// - Complexity: O(*n*), where *n* is the number of elements.
  static func newest<Value: PagedValue>(
    _ page: Value, over stored: Value?, fetched storedAsFetched: Value?, refusedCursor: String?
  ) -> Value? {
    guard let stored, page.nextCursor != nil, let last = page.elements.last,
      let overlapIndex = stored.elements.firstIndex(where: { $0.id == last.id }),
      storedAsFetched?.elements.contains(where: { $0.id == last.id }) ?? true
    else { return nil }
    let pageIDs = Set(page.elements.map(\.id))
    let rest = stored.elements[(overlapIndex + 1)...].filter { !pageIDs.contains($0.id) }
    guard !rest.isEmpty, stored.elements[..<overlapIndex].allSatisfy({ pageIDs.contains($0.id) }),
      rest.last?.id == stored.elements.last?.id, refusedCursor == nil || stored.nextCursor != refusedCursor
    else { return nil }
    var joined = page
    joined.elements += rest
    joined.nextCursor = stored.nextCursor
    return joined
  }

  /// Returns the stored elements followed by the next page, or `nil` if the page doesn't follow the stored elements.
  ///
  /// Returns the stored value if it has all elements of the page, because another repository has stored the page.
  ///
  /// - Parameters:
  ///   - page: The page.
  ///   - cursor: The cursor after which the page was fetched.
  ///   - stored: The stored value.
  /// - Complexity: O(*n*), where *n* is the number of elements.
  static func next<Value: PagedValue>(_ page: Value, after cursor: String, behind stored: Value?) -> Value? {
    guard let stored else { return nil }
    let storedIDs = Set(stored.elements.map(\.id))
    guard stored.nextCursor == cursor else {
      let hasPage = !page.elements.isEmpty && page.elements.allSatisfy { storedIDs.contains($0.id) }
      return hasPage ? stored : nil
    }
    var joined = page
    joined.elements = stored.elements + page.elements.filter { !storedIDs.contains($0.id) }
    return joined
  }
}

/// Joining pages that are fetched in both directions.
extension PageJoin {
  /// Returns the stored elements preceded by a page, or `nil` if the page doesn't precede the stored elements.
  ///
  /// - Parameters:
  ///   - page: The page.
  ///   - cursor: The cursor of the element that follows the page.
  ///   - stored: The stored value.
  /// - Complexity: O(*n*), where *n* is the number of elements.
  static func previous<Value: BidirectionalPagedValue>(
    _ page: Value, before cursor: String, inFrontOf stored: Value?
  ) -> Value? {
    guard let stored, stored.previousCursor == cursor else { return nil }
    return joining(page, to: stored.elements[...], of: stored)
  }

  /// Returns the stored elements with the first ones replaced by a page, or `nil` if the page can't be joined.
  ///
  /// It can't be joined if nothing is stored, the stored elements begin with the newest one, or the element after the
  /// page isn't stored.
  ///
  /// - Parameters:
  ///   - page: The page that was fetched again.
  ///   - stored: The stored value.
  ///   - isNext: Returns whether an element is the one that follows the page.
  /// - Complexity: O(*n*), where *n* is the number of elements.
  static func first<Value: BidirectionalPagedValue>(
    _ page: Value, over stored: Value?, upTo isNext: (Value.Element) -> Bool
  ) -> Value? {
    guard let stored, stored.previousCursor != nil, let index = stored.elements.firstIndex(where: isNext) else {
      return nil
    }
    return joining(page, to: stored.elements[index...], of: stored)
  }

  private static func joining<Value: BidirectionalPagedValue>(
    _ page: Value, to rest: ArraySlice<Value.Element>, of stored: Value
  ) -> Value {
    let pageIDs = Set(page.elements.map(\.id))
    var joined = page
    joined.elements += rest.filter { !pageIDs.contains($0.id) }
    joined.nextCursor = stored.nextCursor
    return joined
  }

  /// Drops elements at the beginning, so that at most `count` remain, the first of which has a cursor.
  ///
  /// Drops nothing if none of the last `count` elements has a cursor.
  ///
  /// - Parameters:
  ///   - count: The maximum number of remaining elements.
  ///   - value: The value to shorten.
  ///   - cursorOf: Returns the cursor of an element, or `nil` for an element that a mutation of this device inserted.
  /// - Complexity: O(*n*), where *n* is the number of elements.
  static func dropFirst<Value: BidirectionalPagedValue>(
    downTo count: Int, _ value: inout Value, cursor cursorOf: (Value.Element) -> String?
  ) {
    guard value.elements.count > count else { return }
    for start in value.elements.count - count..<value.elements.count {
      guard let cursor = cursorOf(value.elements[start]) else { continue }
      value.elements.removeFirst(start)
      value.previousCursor = cursor
      return
    }
  }

  /// Drops elements at the end, so that at most `count` remain, the last of which has a cursor.
  ///
  /// Drops nothing if none of the first `count` elements has a cursor.
  ///
  /// - Parameters:
  ///   - count: The maximum number of remaining elements.
  ///   - value: The value to shorten.
  ///   - cursorOf: Returns the cursor of an element, or `nil` for an element that a mutation of this device inserted.
  /// - Complexity: O(*n*), where *n* is the number of elements.
  static func dropLast<Value: BidirectionalPagedValue>(
    downTo count: Int, _ value: inout Value, cursor cursorOf: (Value.Element) -> String?
  ) {
    guard value.elements.count > count else { return }
    for end in (1...count).reversed() {
      guard let cursor = cursorOf(value.elements[end - 1]) else { continue }
      value.elements.removeLast(value.elements.count - end)
      value.nextCursor = cursor
      return
    }
  }
}
