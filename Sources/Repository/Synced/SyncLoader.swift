internal import DataStore
internal import Foundation

/// Fetches values, and has the replies judged and stored.
///
/// Belongs to one ``SyncEngine`` and is only used in its isolation.
final class SyncLoader<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias Cell = SyncCell<Source>
  typealias Failure = RepositoryError<Source.Failure>

  /// Identifies a request that all calls for one key and part share.
  private struct LoadKey: Hashable, Sendable, CustomStringConvertible {
    let key: Key
    let part: Cell.Part

    var description: String {
      switch part {
      case .whole: key.storeID
      case .newestPage: "\(key.storeID) (newest page)"
      case .firstPage: "\(key.storeID) (first page)"
      case .nextPage: "\(key.storeID) (next page)"
      case .previousPage: "\(key.storeID) (previous page)"
      }
    }
  }

  private enum Request {
    case value
    case pages(PageRequest)

    var extent: SyncState<Value, Source.Mutation>.Extent {
      switch self {
      case .value, .pages(.loaded): .whole
      case .pages(.newest), .pages(.first): .newestOrFirstPage
      case .pages(.next), .pages(.previous): .adjacentPage
      }
    }
  }

  /// The longest pause before a discarded reply is fetched again, because the changes beside it may end at any time.
  private static var maximumPause: Duration { .seconds(2) }

  private let capabilities: SourceCapabilities<Source>
  private let pageSize: Int
  /// The maximum number of elements that a value keeps; `nil` for no limit.
  private let maximumCount: Int?
  private let freshness: Freshness
  private let now: @Sendable () -> Date
  private let events: RepositoryEvents
  /// The requests in flight; the value of each says whether the server was asked.
  private let requests: SharedRequests<LoadKey, Bool, Failure>
  /// The fetches whose reply has arrived and is about to be judged, by number; the outcome of each says whether the
  /// reply was accepted.
  private let fetches = PendingCalls<Int, Result<Bool, Failure>>()
  private var lastFetchNumber = 0

  init(
    _ capabilities: SourceCapabilities<Source>, configuration: RepositoryConfiguration, events: RepositoryEvents
  ) {
    (self.capabilities, self.events) = (capabilities, events)
    (pageSize, freshness, now) = (configuration.pageSize, configuration.freshness, configuration.now)
    maximumCount = configuration.maximumPages.map { $0 * configuration.pageSize }
    requests = SharedRequests(events: events, executor: configuration.taskExecutor)
  }

  /// Fetches a value unless the stored one is fresh.
  ///
  /// - Returns: Whether the server was asked.
  func refresh(_ key: Key, _ part: Cell.Part?, in engine: isolated Engine) async throws(Failure) -> Bool {
    let cell = try await engine.use(key)
    defer { engine.endUse(cell) }
    if isFresh(cell) { return false }
    // Another process may have stored a value that the store hasn't reported yet.
    await engine.feed.receiveUnreported(cell, in: engine)
    if isFresh(cell) { return false }
    let invalidationCount = cell.invalidationCount
    var wasServerAsked = try await load(key, part, in: engine)
    // The call may have joined a request that began before the value was marked as stale.
    if cell.isInvalidated(before: invalidationCount) { wasServerAsked = try await load(key, part, in: engine) }
    return wasServerAsked
  }

  /// Returns whether the stored value is fresh.
  func isFresh(_ cell: Cell) -> Bool {
    guard !cell.isInvalidated, cell.state.base != nil, let fetchedAt = cell.fetchedAt else { return false }
    return freshness.isFresh(savedAt: fetchedAt, now: now())
  }

  /// The part that is fetched if a call doesn't specify one.
  var defaultPart: Cell.Part {
    guard let paging = capabilities.paging else { return .whole }
    return paging.backward == nil ? .newestPage : .firstPage
  }

  /// Fetches a value, or joins a request for it that is in flight.
  ///
  /// - Returns: Whether the server was asked. It isn't asked for a next or previous page that doesn't exist.
  func load(_ key: Key, _ part: Cell.Part?, in engine: isolated Engine) async throws(Failure) -> Bool {
    let part = currentPart(part ?? defaultPart, of: key)
    // The events of a request contain the key, so no request may begin after the key's user has signed out. Opening the
    // key throws in that case.
    if key.userID != nil { engine.endUse(try await engine.use(key)) }
    let signOutCount = engine.users.signOutCount(of: key.userID)
    // The events of the request contain its key, and must not be replayed after a sign-out.
    defer { if engine.users.signOutCount(of: key.userID) != signOutCount { events.forget() } }
    do throws(SharedRequestError<Failure>) {
      return try await requests.value(for: LoadKey(key: key, part: part)) {
        [weak engine] (isWanted) async throws(Failure) in
        guard let engine else { throw .cancelled }
        return try await engine.performLoad(key, part, isWanted: isWanted)
      }
    } catch {
      switch error {
      case .failed(let failure): throw failure
      case .cancelled: throw .cancelled
      }
    }
  }

  /// Returns the part of a value that a call for a part loads now.
  ///
  /// It is the whole value if that is being fetched, because it includes the newest page. A page that is fetched beside
  /// it would make it outdated, and frequent pages would do so again and again.
  private func currentPart(_ part: Cell.Part, of key: Key) -> Cell.Part {
    let isIncluded = part == .newestPage || part == .firstPage
    return isIncluded && requests.isRequested(LoadKey(key: key, part: .whole)) ? .whole : part
  }

  /// Performs a request that callers share.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - part: The part to fetch.
  ///   - isWanted: Returns whether a caller still waits for the request.
  ///   - engine: The engine.
  /// - Returns: Whether the server was asked. It isn't asked for a next or previous page that doesn't exist.
  func perform(
    _ key: Key, _ part: Cell.Part, isWanted: @escaping @Sendable () -> Bool, in engine: isolated Engine
  ) async throws(Failure) -> Bool {
    let cell = try await engine.use(key)
    defer { engine.endUse(cell) }
    guard var request = request(for: part, cell) else { return false }
    // An abandoned request must not begin to load, because that would clear the failure of a later one.
    guard isWanted() else { throw .cancelled }
    let load = cell.beginLoading(part)
    let beganAt = cell.state.beginFetching()
    defer { cell.state.endFetching(beganAt) }
    engine.publish(cell)
    do throws(Failure) {
      // A reply that may be older than the stored value, or doesn't fit it, is discarded, and the request is repeated.
      var discardedCount = 0
      while try await !fetchAndStore(request, cell, isWanted: isWanted, in: engine) {
        if cell.isClosed { throw Failure.signedOut }
        events.emit(.replyDiscarded(key: "\(LoadKey(key: key, part: part))"))
        discardedCount += 1
        // The first repetition usually suffices. If it doesn't, the value changes faster than it can be fetched.
        if discardedCount > 1 {
          await engine.backoff.wait(afterAttempt: discardedCount - 1, atMost: Self.maximumPause)
        }
        guard isWanted() else { throw Failure.cancelled }
        // Another reply has stored a value that is new enough for the callers of this load.
        if request.extent != .adjacentPage, cell.state.isRefreshed(since: beganAt, isWhole: request.extent == .whole) {
          break
        }
        // Ends without an error if the stored value now shows that there is no such page.
        guard let next = self.request(for: part, cell) else { break }
        request = next
      }
      cell.endLoading(load, nil)
      engine.publish(cell)
      if request.extent != .adjacentPage { engine.observedLoading.recordLoad(of: key, in: engine) }
      return true
    } catch {
      cell.endLoading(load, error)
      engine.publish(cell)
      throw error
    }
  }

  /// Returns the request for a part of the current value; `nil` if there is no such page.
  ///
  /// If nothing is stored, the newest page is requested instead of any other page.
  private func request(for part: Cell.Part, _ cell: Cell) -> Request? {
    guard let paging = capabilities.paging else { return .value }
    guard let base = cell.state.base?.value else { return .pages(part == .whole ? .loaded(first: nil) : .newest) }
    switch part {
    case .whole: return .pages(.loaded(first: firstPage(of: base, cell)))
    case .newestPage: return .pages(.newest)
    case .nextPage: return paging.nextCursor(base).map { .pages(.next(after: $0)) }
    case .previousPage: return paging.backward?.previousCursor(base).map { .pages(.previous(before: $0)) }
    case .firstPage: return .pages(firstPage(of: base, cell).map { .first($0) } ?? .newest)
    }
  }

  /// Returns the first page of a stored list that doesn't begin with the newest element; `nil` if the list has to begin
  /// with the newest element, because the server has refused to continue it at either end.
  private func firstPage(of base: Value, _ cell: Cell) -> PageRequest.FirstPage? {
    guard let backward = capabilities.paging?.backward, backward.previousCursor(base) != nil,
      !cell.isFirstPageRefused, !cell.isNextPageRefused,
      let end = backward.endOfFirstPage(base, cell.state.baseAsFetched, pageSize)
    else { return nil }
    return PageRequest.FirstPage(cursor: end.cursor, count: end.count)
  }

  /// Performs one request, and has the reply judged and stored.
  ///
  /// - Returns: Whether the reply was stored. Otherwise it may be older than the stored value, or doesn't fit it.
  private func fetchAndStore(
    _ request: Request, _ cell: Cell, isWanted: @escaping @Sendable () -> Bool, in engine: isolated Engine
  ) async throws(Failure) -> Bool {
    let requestedAt = cell.state.beginFetching()
    defer { cell.state.endFetching(requestedAt) }
    let (invalidationCount, networkChangeCount) = (cell.invalidationCount, engine.environment.changeCount)
    let fetched: FetchedPages<Value>?
    do throws(Source.Failure) {
      fetched = try await fetch(request, of: cell, isWanted: isWanted)
    } catch {
      if Task.isCancelled { throw .cancelled }
      let disposition = capabilities.source.disposition(of: error)
      if disposition.isAnswer { engine.environment.recordAnswer(toRequestAfter: networkChangeCount, in: engine) }
      if disposition == .refused, !cell.isClosed {
        switch request {
        case .pages(.next(let cursor)): cell.refusedCursor = cursor
        case .pages(.first): cell.isFirstPageRefused = true
        case .value where cell.state.needsWholeValue, .pages(.loaded) where cell.state.needsWholeValue:
          // No fetched value will ever include the confirmed mutations, so they are applied to the base.
          _ = try await judge(requestedAt: requestedAt, cell, in: engine) { .refused(number: $0) }
        case .value, .pages(.loaded), .pages(.newest), .pages(.previous): break
        }
      }
      throw .server(error)
    }
    engine.environment.recordAnswer(toRequestAfter: networkChangeCount, in: engine)
    if cell.isClosed { throw .signedOut }
    guard let fetched else { throw .cancelled }
    if fetched.isEndless || fetched.isGivenUp { events.emit(.endlessPages(key: cell.key.storeID)) }
    if fetched.isGivenUp, request.extent != .adjacentPage, cell.state.base != nil {
      // The stored elements stay. No fetched value will include the confirmed mutations.
      if !cell.state.needsWholeValue { return true }
      return try await judge(requestedAt: requestedAt, cell, in: engine) { .refused(number: $0) }
    }
    // The server returns the page after all, so its refusal no longer matters.
    if case .pages(.next(let cursor)) = request, cell.refusedCursor == cursor { cell.refusedCursor = nil }
    let merge = merge(of: fetched, request, refusedCursor: cell.refusedCursor)
    let isAccepted = try await judge(requestedAt: requestedAt, cell, in: engine) {
      .fetched(number: $0, request.extent, merge: merge)
    }
    if isAccepted, request.extent != .adjacentPage { cell.recordReply(toRequestAfter: invalidationCount) }
    return isAccepted
  }

  /// Makes the requests of a load; returns `nil` if it is no longer wanted.
  private func fetch(
    _ request: Request, of cell: Cell, isWanted: @escaping @Sendable () -> Bool,
    isolation: isolated (any Actor)? = #isolation
  ) async throws(Source.Failure) -> FetchedPages<Value>? {
    guard case .pages(let pages) = request, let paging = capabilities.paging else {
      return FetchedPages(
        value: try await capabilities.source.fetch(cell.key), isGivenUp: false, isEndless: false)
    }
    let source = capabilities.source
    let load = PageLoad<Key, Value, Source.Failure>(
      key: cell.key, pageSize: pageSize, hasMaximumCount: maximumCount != nil, stored: cell.state.base?.value,
      storedAsFetched: cell.state.fetched, visible: cell.state.visible, refusedCursor: cell.refusedCursor,
      isRefusal: { source.disposition(of: $0) == .refused }, isWanted: isWanted)
    return try await paging.fetch(pages, load)
  }

  /// Has a reply judged and stored.
  ///
  /// - Returns: Whether the reply was accepted.
  private func judge(
    requestedAt: SyncState<Value, Source.Mutation>.Timestamp, _ cell: Cell, in engine: isolated Engine,
    _ makeContent: (_ number: Int) -> SyncState<Value, Source.Mutation>.Reply.Content
  ) async throws(Failure) -> Bool {
    lastFetchNumber += 1
    let number = lastFetchNumber
    cell.state.receive(makeContent(number), requestedAt: requestedAt)
    fetches.open(number)
    engine.writes.write(cell, in: engine)
    return try await fetches.outcome(of: number).get()
  }

  /// Returns a closure that joins a reply to the stored value.
  ///
  /// The closure returns `nil` if the reply doesn't fit.
  private func merge(
    of fetched: FetchedPages<Value>, _ request: Request, refusedCursor: String?
  ) -> SyncState<Value, Source.Mutation>.Reply.Merge {
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

  /// Ends the requests for some keys, because their user has signed out.
  func endRequests(where isEnded: (Key) -> Bool) {
    requests.end(with: .signedOut) { isEnded($0.key) }
  }

  /// Ends a fetch whose reply was judged, couldn't be stored, or was discarded because the key's user signed out.
  ///
  /// - Parameters:
  ///   - number: The number of the fetch.
  ///   - result: Whether the reply was accepted, or the reason why it wasn't stored.
  func end(_ number: Int, _ result: Result<Bool, Failure>) {
    fetches.end(number, result)
  }

  /// Fetches the whole value for confirmed mutations whose reply couldn't be used, until a value includes them or the
  /// server refuses to return one.
  ///
  /// If that is in progress and the last fetch has failed, only records that the attempts of the mutations have ended.
  func fetchWhole(_ cell: Cell, in engine: isolated Engine) {
    switch cell.recovery {
    case .fetching: return
    case .failing: return recordThatAttemptsEnded(cell, in: engine)
    case nil: cell.recovery = .fetching
    }
    let key = cell.key
    engine.start { engine in
      guard let cell = engine.cell(key) else { return }
      await engine.loader.fetchWholeWhileNeeded(cell, in: engine)
    }
  }

  private func fetchWholeWhileNeeded(_ cell: Cell, in engine: isolated Engine) async {
    var attempt = 0
    while cell.state.needsWholeValue, !cell.isClosed, !Task.isCancelled {
      do throws(Failure) {
        let wasServerAsked = try await load(cell.key, .whole, in: engine)
        if wasServerAsked { engine.endWaitsAfterFetch() }
        (attempt, cell.recovery) = (0, .fetching)
      } catch {
        guard cell.state.needsWholeValue, !cell.isClosed else { break }
        (attempt, cell.recovery) = (attempt + 1, .failing)
        recordThatAttemptsEnded(cell, in: engine)
        await engine.backoff.wait(afterAttempt: attempt)
      }
    }
    cell.recovery = nil
    engine.release(cell)
  }

  /// Records that the attempts of the mutations that wait for a whole value have ended, and ends their calls.
  ///
  /// The calls don't wait, because it may take long until a fetch succeeds. Without the records, these attempts would
  /// count as interrupted if this process ends. The records are written only once a fetch has failed: as long as the
  /// fetches succeed, a value soon includes the mutations, and their records are removed.
  private func recordThatAttemptsEnded(_ cell: Cell, in engine: isolated Engine) {
    for id in cell.state.idsThatNeedWholeValue {
      engine.calls.end(id, .success(.queued))
      let hasRecordChanged = engine.queue.recordUnknownOutcome(of: id)
      guard hasRecordChanged else { continue }
      // Runs to completion even if the repository is released now.
      engine.startToCompletion { engine in await engine.writer.save(id, in: engine) }
    }
  }
}
