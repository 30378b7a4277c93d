/// Joins fetched pages to stored ones, so that what is stored is always a stretch of the server's list without a gap.
enum PageJoin {
  /// Returns the newest page with the stored elements that follow its last one.
  ///
  /// The stored elements are dropped where they may not be what follows, or where they don't lead on:
  /// - The page's last element isn't stored: there may be a gap between the two.
  /// - The page's last element is stored, but not where the server has it: it was put there by a change of this device.
  /// - The page lacks an element that is stored before its last one: that element may be anywhere by now.
  /// - The page has the last stored element, or the server refused to give what follows that.
  ///
  /// - Parameters:
  ///   - page: The newest page.
  ///   - stored: The stored value.
  ///   - fetched: The stored value as it was fetched; `nil` if nothing has changed it since.
  ///   - refusedCursor: Where the server refused to give the next page, if it did.
  /// - Complexity: O(*n*), where *n* is the number of elements.
  static func newest<Value: PagedValue>(
    _ page: Value, over stored: Value?, fetched: Value?, refusedCursor: String?
  ) -> Value {
    guard let stored, page.nextCursor != nil, let last = page.elements.last,
      let overlap = stored.elements.firstIndex(where: { $0.id == last.id }),
      fetched?.elements.contains(where: { $0.id == last.id }) ?? true
    else { return page }
    let newer = Set(page.elements.map(\.id))
    let rest = stored.elements[(overlap + 1)...].filter { !newer.contains($0.id) }
    guard !rest.isEmpty, stored.elements[..<overlap].allSatisfy({ newer.contains($0.id) }),
      rest.last?.id == stored.elements.last?.id, refusedCursor == nil || stored.nextCursor != refusedCursor
    else { return page }
    var joined = page
    joined.elements += rest
    joined.nextCursor = stored.nextCursor
    return joined
  }

  /// Returns the stored elements with the next page behind them, or `nil` if the page doesn't continue what is stored.
  ///
  /// - Parameters:
  ///   - page: The page.
  ///   - cursor: Where it begins.
  ///   - stored: The stored value.
  /// - Complexity: O(*n*), where *n* is the number of elements.
  static func next<Value: PagedValue>(_ page: Value, after cursor: String, behind stored: Value?) -> Value? {
    guard let stored, stored.nextCursor == cursor else { return nil }
    let older = Set(stored.elements.map(\.id))
    var joined = page
    joined.elements = stored.elements + page.elements.filter { !older.contains($0.id) }
    return joined
  }
}
