/// A request for a part of a value.
enum LoadRequest {
  case value
  case pages(PageRequest)

  /// Whether it is one of the whole value.
  var isWhole: Bool {
    switch self {
    case .value, .pages(.loaded): true
    case .pages: false
    }
  }

  /// Whether it is one of a page that follows or precedes the stored ones.
  var isOfAdjacentPage: Bool {
    switch self {
    case .pages(.next), .pages(.previous): true
    case .value, .pages: false
    }
  }
}

extension SyncCore {
  typealias Part = KeyState<Source>.Part
  typealias Timestamp = SyncState<Value, Mutation>.Timestamp
  typealias ReplyContent = SyncState<Value, Mutation>.Reply.Content

  /// The part that is fetched if a call doesn't specify one.
  var defaultPart: Part {
    guard let paging = capabilities.paging else { return .whole }
    return paging.backward == nil ? .newestPage : .firstPage
  }

  /// Returns the request for a part of the current value; `nil` if there is no such page.
  ///
  /// If nothing is stored, the newest page is requested instead of any other page.
  func request(for part: Part, _ id: ID) -> LoadRequest? {
    guard let paging = capabilities.paging else { return .value }
    guard let state = keys[id], let base = state.state.base?.value else {
      return .pages(part == .whole ? .loaded(first: nil) : .newest)
    }
    switch part {
    case .whole: return .pages(.loaded(first: firstPage(of: base, state)))
    case .newestPage: return .pages(.newest)
    case .nextPage: return paging.nextCursor(base).map { .pages(.next(after: $0)) }
    case .previousPage: return paging.backward?.previousCursor(base).map { .pages(.previous(before: $0)) }
    case .firstPage: return .pages(firstPage(of: base, state).map { .first($0) } ?? .newest)
    }
  }

  /// Returns the first page of a stored list that doesn't begin with the newest element; `nil` if the list has to begin
  /// with the newest element, because the server has refused to continue it at either end.
  private func firstPage(of base: Value, _ state: State) -> PageRequest.FirstPage? {
    guard let backward = capabilities.paging?.backward, backward.previousCursor(base) != nil,
      !state.isFirstPageRefused, !state.isNextPageRefused,
      let end = backward.endOfFirstPage(base, state.state.baseAsFetched, settings.pageSize)
    else { return nil }
    return PageRequest.FirstPage(cursor: end.cursor, count: end.count)
  }

  /// The maximum number of elements that a value keeps; `nil` for no limit.
  private var maximumCount: Int? { settings.maximumPages.map { $0 * settings.pageSize } }

  /// What a fetch of pages needs to know.
  func pageLoad(_ id: ID, isWanted: @escaping @Sendable () -> Bool) -> PageLoad<Key, Value, Source.Failure> {
    let (source, state) = (capabilities.source, keys[id])
    return PageLoad(
      key: id.key, pageSize: settings.pageSize, hasMaximumCount: maximumCount != nil, stored: state?.state.base?.value,
      storedAsFetched: state?.state.fetched, visible: state?.state.visible, refusedCursor: state?.refusedCursor,
      isRefusal: { source.disposition(of: $0) == .refused }, isWanted: isWanted)
  }

  /// Begins a load, which ends with ``endLoad(_:_:_:_:)``.
  mutating func beginLoad(_ part: Part, _ id: ID) -> (load: State.Load, beganAt: Timestamp)? {
    guard let load = keys[id]?.beginLoading(part), let beganAt = keys[id]?.state.beginFetching() else { return nil }
    touch(id)
    return (load, beganAt)
  }

  mutating func endLoad(_ load: State.Load, _ beganAt: Timestamp, _ id: ID, _ error: Failure?) {
    keys[id]?.endLoading(load, error)
    keys[id]?.state.endFetching(beganAt)
    touch(id)
  }

  /// Records that the server has refused a request for a part.
  ///
  /// - Returns: Whether a refusal of the whole value must be judged, because confirmed mutations wait for it: no
  ///   fetched value will ever include them.
  mutating func recordRefusal(of request: LoadRequest, _ id: ID) -> Bool {
    switch request {
    case .pages(.next(let cursor)): keys[id]?.refusedCursor = cursor
    case .pages(.first): keys[id]?.isFirstPageRefused = true
    case .value, .pages(.loaded): return needsWholeValue(id)
    case .pages(.newest), .pages(.previous): break
    }
    return false
  }

  /// What becomes of fetched pages.
  enum FetchedPart {
    /// `isFetched` is `false` for the refusal of a whole value.
    case judge((_ number: Int) -> ReplyContent, isFetched: Bool)
    /// The stored elements stay, because the server's pages have no end.
    case keepStored
  }

  /// Receives the fetched part of a value.
  mutating func receive(_ fetched: FetchedPages<Value>, _ request: LoadRequest, _ id: ID) -> FetchedPart {
    if fetched.isEndless || fetched.isGivenUp { emit(.endlessPages(key: id.key.storeID)) }
    if fetched.isGivenUp, !request.isOfAdjacentPage, keys[id]?.state.base != nil {
      // No fetched value will include the confirmed mutations.
      return needsWholeValue(id) ? .judge({ .refused(number: $0) }, isFetched: false) : .keepStored
    }
    // The server returns the page after all, so its refusal no longer matters.
    if case .pages(.next(let cursor)) = request, keys[id]?.refusedCursor == cursor { keys[id]?.refusedCursor = nil }
    let merge = merge(of: fetched, request, refusedCursor: keys[id]?.refusedCursor)
    let extent: SyncState<Value, Mutation>.Extent =
      request.isWhole ? .whole : request.isOfAdjacentPage ? .adjacentPage : .newestOrFirstPage
    return .judge({ .fetched(number: $0, extent, merge: merge) }, isFetched: true)
  }

  /// Has a reply judged and stored.
  ///
  /// - Returns: The number of the fetch.
  mutating func judge(
    _ makeContent: (_ number: Int) -> ReplyContent, requestedAt: Timestamp, _ id: ID
  ) -> Int {
    lastFetchNumber += 1
    keys[id]?.state.receive(makeContent(lastFetchNumber), requestedAt: requestedAt)
    write(id)
    return lastFetchNumber
  }

  /// Returns a closure that joins a reply to the stored value.
  ///
  /// The closure returns `nil` if the reply doesn't fit.
  private func merge(
    of fetched: FetchedPages<Value>, _ request: LoadRequest, refusedCursor: String?
  ) -> SyncState<Value, Mutation>.Reply.Merge {
    let value = fetched.value
    return { [capabilities, maximumCount] stored, storedAsFetched, visible in
      guard let paging = capabilities.paging else { return capabilities.complete(value, stored) }
      var joined: Value?
      switch request {
      case .value, .pages(.loaded), .pages(.newest):
        if case .pages(.newest) = request { joined = paging.joinNewest(value, stored, storedAsFetched, refusedCursor) }
        if joined == nil, let stored, paging.isTooShort(value, stored, visible) { return nil }
        joined = capabilities.complete(joined ?? value, stored)
      case .pages(.next(let cursor)): joined = paging.joinNext(value, cursor, stored)
      case .pages(.previous(let cursor)): joined = paging.backward?.joinPrevious(value, cursor, stored)
      case .pages(.first(let page)): joined = paging.backward?.joinFirst(value, page.cursor, stored)
      }
      guard let backward = paging.backward, let maximumCount, var shortened = joined else { return joined }
      let dropsAtEnd = if case .pages(.next) = request { false } else { true }
      backward.shorten(&shortened, storedAsFetched, value, maximumCount, dropsAtEnd)
      return shortened
    }
  }
}
