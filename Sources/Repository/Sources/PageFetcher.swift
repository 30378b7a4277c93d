/// Fetches the pages that one load of a list needs, one after the other, and joins them.
///
/// Each element counts once, even if the server returns it on two pages, because the list changed in between. A page
/// without a new element is skipped: filters make some servers return empty pages in the middle of a list.
struct PageFetcher<Source: PagedSource> {
  typealias Value = Source.Value
  typealias Failure = Source.Failure

  /// The number of successive pages without a new element after which a load ends, so that it isn't endless.
  static var maximumSkippedPages: Int { 20 }

  private let source: Source
  private let backward: SourceCapabilities<Source>.Backward?
  private let load: PageLoad<Source.Key, Value, Failure>
  /// The elements that don't make a page useful, because they are stored or were fetched before.
  private var knownIDs: Set<Value.Element.ID> = []
  private var isEndless = false
  private var isGivenUp = false

  init(
    _ source: Source, _ backward: SourceCapabilities<Source>.Backward?,
    _ load: PageLoad<Source.Key, Value, Failure>
  ) {
    (self.source, self.backward, self.load) = (source, backward, load)
  }

  /// Fetches a part of a list.
  ///
  /// - Returns: `nil` if the load is no longer wanted.
  mutating func fetch(_ request: PageRequest) async throws(Failure) -> FetchedPages<Value>? {
    let value: Value?
    switch request {
    case .loaded where source.fetchesCompleteLists: value = try await completeList()
    case .loaded(let first): value = try await loadedPages(from: first)
    case .newest: value = try await newestPages()
    case .next(let cursor):
      knownIDs = Set(load.stored?.elements.map(\.id) ?? [])
      value = try await usefulPage(after: cursor, limit: load.pageSize).map { cut($0, to: load.pageSize, atEnd: true) }
    case .previous(let cursor): value = try await previousPage(before: cursor)
    case .first(let page): value = try await firstPage(page)
    }
    return value.map { FetchedPages(value: $0, isGivenUp: isGivenUp, isEndless: isEndless) }
  }

  private mutating func completeList() async throws(Failure) -> Value {
    let page = try await source.fetch(load.key)
    return withoutKnownElements(page)
  }

  private mutating func loadedPages(from first: PageRequest.FirstPage?) async throws(Failure) -> Value? {
    if let first, let page = try await existingFirstPage(first) {
      return try await continuing(page, until: hasLastElement)
    }
    guard let page = try await usefulPage(after: nil, limit: load.pageSize) else { return nil }
    return try await continuing(page, until: hasLastElement)
  }

  /// Fetches the newest page, and further ones until the stored elements can follow them.
  ///
  /// The first page suffices for a list that doesn't begin with the newest element, because it replaces that list.
  private mutating func newestPages() async throws(Failure) -> Value? {
    guard let page = try await usefulPage(after: nil, limit: load.pageSize) else { return nil }
    guard let stored = load.stored, backward?.previousCursor(stored) == nil else { return page }
    let (storedAsFetched, refusedCursor) = (load.storedAsFetched, load.refusedCursor)
    return try await continuing(page) { value, missingCount in
      missingCount <= 0
        || PageJoin.newest(value, over: stored, fetched: storedAsFetched, refusedCursor: refusedCursor) != nil
    }
  }

  /// Fetches the first page of a list that begins in the middle, with the cursor of its last element.
  ///
  /// - Returns: `nil` if the page no longer exists, so the list can only begin with the newest one.
  private mutating func existingFirstPage(_ first: PageRequest.FirstPage) async throws(Failure) -> Value? {
    do throws(Failure) {
      guard var page = try await firstPage(first), let cursor = backward?.endCursor(page) else { return nil }
      // The page after the last element, not after the page, because the two may differ for the server.
      page.nextCursor = cursor
      return page
    } catch {
      guard load.isRefusal(error) else { throw error }
      return nil
    }
  }

  private mutating func firstPage(_ first: PageRequest.FirstPage) async throws(Failure) -> Value? {
    guard let backward else { return nil }
    let page = try await backward.fetch(load.key, first.cursor, first.count)
    return cut(withoutKnownElements(page), to: first.count, atEnd: false)
  }

  private mutating func previousPage(before cursor: String) async throws(Failure) -> Value? {
    guard let backward else { return nil }
    knownIDs = Set(load.stored?.elements.map(\.id) ?? [])
    return try await firstUsefulPage(from: cursor, backward.previousCursor, backward.endAtBeginning) {
      [key = load.key, pageSize = load.pageSize] (cursor) async throws(Failure) in
      try await backward.fetch(key, cursor ?? "", pageSize)
    }.map { cut($0, to: load.pageSize, atEnd: false) }
  }

  /// Drops the elements of a page beyond the requested number, at the end that is away from the stored elements.
  ///
  /// Otherwise such a page would push the elements that the user looks at out of a list of limited length. A list
  /// without a limit keeps them.
  private func cut(_ page: Value, to limit: Int, atEnd isAtEnd: Bool) -> Value {
    guard load.hasMaximumCount, let backward else { return page }
    var page = page
    backward.shorten(&page, nil, page, limit, isAtEnd)
    return page
  }

  /// Returns whether pages have as many elements as are loaded, and the last loaded one, or a page more.
  ///
  /// Without the last one, elements that were inserted would push others out of the list.
  private func hasLastElement(_ pages: Value, missingCount: Int) -> Bool {
    guard missingCount <= 0, let last = load.stored?.elements.last?.id else { return missingCount <= 0 }
    return missingCount <= -load.pageSize || pages.elements.contains { $0.id == last }
  }

  /// Appends further pages until `isEnough` returns `true`, given the pages and the number of elements that are loaded
  /// but not fetched yet.
  private mutating func continuing(_ page: Value, until isEnough: (Value, _ missingCount: Int) -> Bool)
    async throws(Failure) -> Value?
  {
    var value = page
    let count = max(load.stored?.elements.count ?? 0, load.visible?.elements.count ?? 0)
    while !isGivenUp, let cursor = value.nextCursor, !isEnough(value, count - value.elements.count) {
      let missingCount = count - value.elements.count
      let limit = missingCount > 0 ? min(load.pageSize, missingCount) : load.pageSize
      guard let next = try await usefulPage(after: cursor, limit: limit) else { return nil }
      value.elements += next.elements
      value.nextCursor = next.nextCursor
    }
    return value
  }

  private mutating func usefulPage(after cursor: String?, limit: Int) async throws(Failure) -> Value? {
    try await firstUsefulPage(from: cursor, { $0.nextCursor }, { $0.nextCursor = nil }) {
      [source, key = load.key] (cursor) async throws(Failure) in
      try await source.fetch(key, after: cursor, limit: limit)
    }
  }

  /// Fetches pages until one has a new element, the list ends, or ``maximumSkippedPages`` had none.
  ///
  /// - Returns: The last page, without the elements that are known; `nil` if the load is no longer wanted.
  private mutating func firstUsefulPage(
    from start: String?, _ nextCursor: (Value) -> String?, _ end: (inout Value) -> Void,
    _ fetch: (_ cursor: String?) async throws(Failure) -> Value
  ) async throws(Failure) -> Value? {
    var (cursor, cursors, skippedCount) = (start, Set<String>(), 0)
    while load.isWanted() {
      var page = withoutKnownElements(try await fetch(cursor))
      guard page.elements.isEmpty, let next = nextCursor(page) else { return page }
      if let cursor { cursors.insert(cursor) }
      // Some servers use one cursor for all pages, so a cursor may return as long as new elements come with it.
      if cursors.contains(next) {
        isEndless = true
        end(&page)
        return page
      }
      skippedCount += 1
      if skippedCount == Self.maximumSkippedPages {
        isGivenUp = true
        return page
      }
      cursor = next
    }
    return nil
  }

  /// Returns a page with the first occurrence of each element that isn't known, which is known from now on.
  private mutating func withoutKnownElements(_ page: Value) -> Value {
    var page = page
    let newElements = page.elements.filter { knownIDs.insert($0.id).inserted }
    if newElements.count != page.elements.count { page.elements = newElements }
    return page
  }
}
