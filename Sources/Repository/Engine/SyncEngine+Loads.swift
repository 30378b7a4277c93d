internal import DataStore

/// Identifies a request that all calls for one key and part share.
struct LoadKey<Source: RepositorySource>: Hashable, Sendable, CustomStringConvertible {
  let key: Source.Key
  let part: KeyState<Source>.Part

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

extension SyncEngine {
  typealias Part = Core.Part

  /// The longest pause before a discarded reply is fetched again, because the changes beside it may end at any time.
  private static var maximumPause: Duration { .seconds(2) }

  /// Fetches a value unless the stored one is fresh.
  func refresh(_ key: Key, _ part: Part? = nil) async throws(Failure) {
    try checkMayBegin(key)
    if try await fetchUnlessFresh(key, part) { update { $0.endWaitsAfterFetch() } }
  }

  /// Fetches a value, or joins a request for it that is in flight.
  func load(_ key: Key, _ part: Part? = nil) async throws(Failure) {
    try checkMayBegin(key)
    if try await fetch(key, part) { update { $0.endWaitsAfterFetch() } }
  }

  /// Throws ``RepositoryError/signedOut`` if a key's user has signed out, or is signing out.
  func checkMayBegin(_ key: Key) throws(Failure) {
    guard core.mayBegin(key.userID) else { throw .signedOut }
  }

  /// Fetches a value unless the stored one is fresh.
  ///
  /// - Returns: Whether the server was asked.
  private func fetchUnlessFresh(_ key: Key, _ part: Part?) async throws(Failure) -> Bool {
    let id = try await use(key)
    defer { endUse(id) }
    if isFresh(id) { return false }
    // Another process may have stored a value that the store hasn't reported yet.
    await receiveUnreported(id)
    if isFresh(id) { return false }
    let invalidationCount = core.keys[id]?.invalidationCount ?? 0
    var wasServerAsked = try await fetch(key, part)
    // The call may have joined a request that began before the value was marked as stale.
    if core.keys[id]?.isInvalidated(before: invalidationCount) ?? false { wasServerAsked = try await fetch(key, part) }
    return wasServerAsked
  }

  private func isFresh(_ id: ID) -> Bool { update { core in core.keys[id].map { core.isFresh($0) } ?? false } }

  /// Applies the stored value of a key, if the store hasn't reported it yet.
  private func receiveUnreported(_ id: ID) async {
    guard let storeKey = core.keys[id]?.storeKey else { return }
    do throws(StoreError) {
      guard let stored = try await load(storeKey), stored.tag != core.keys[id]?.state.base?.tag else { return }
      try await catchUp()
    } catch {
      events.emit(.storeFailed(error))
    }
  }

  /// Fetches a value, or joins a request for it that is in flight.
  ///
  /// - Returns: Whether the server was asked. It isn't asked for a next or previous page that doesn't exist.
  private func fetch(_ key: Key, _ part: Part?) async throws(Failure) -> Bool {
    var part = part ?? core.defaultPart
    // The whole value includes the newest page. A page that is fetched beside it would make it outdated, and frequent
    // pages would do so again and again.
    if part == .newestPage || part == .firstPage, requests.isRequested(LoadKey(key: key, part: .whole)) {
      part = .whole
    }
    // The events of a request contain the key, so no request may begin after the key's user has signed out. Opening the
    // key throws in that case.
    if key.userID != nil { endUse(try await use(key)) }
    let signOutCount = core.signOutCount(of: key.userID)
    // The events of the request contain its key, and must not be replayed after a sign-out.
    defer { if core.signOutCount(of: key.userID) != signOutCount { events.forget() } }
    do throws(SharedRequestError<Failure>) {
      return try await requests.value(for: LoadKey(key: key, part: part)) {
        [weak self, part] (isWanted) async throws(Failure) in
        guard let self else { throw .cancelled }
        return try await self.performLoad(key, part, isWanted: isWanted)
      }
    } catch {
      switch error {
      case .failed(let failure): throw failure
      case .cancelled: throw .cancelled
      }
    }
  }

  /// Performs a request that callers share.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - part: The part to fetch.
  ///   - isWanted: Returns whether a caller still waits for the request.
  /// - Returns: Whether the server was asked. It isn't asked for a next or previous page that doesn't exist.
  private func performLoad(
    _ key: Key, _ part: Part, isWanted: @escaping @Sendable () -> Bool
  ) async throws(Failure) -> Bool {
    let id = try await use(key)
    defer { endUse(id) }
    guard var request = core.request(for: part, id) else { return false }
    // An abandoned request must not begin to load, because that would clear the failure of a later one.
    guard isWanted() else { throw .cancelled }
    guard let (load, beganAt) = update({ $0.beginLoad(part, id) }) else { throw .signedOut }
    do throws(Failure) {
      // A reply that may be older than the stored value, or doesn't fit it, is discarded, and the request is repeated.
      var discardedCount = 0
      while try await !fetchAndStore(request, id, isWanted: isWanted) {
        if core.keys[id] == nil { throw Failure.signedOut }
        events.emit(.replyDiscarded(key: "\(LoadKey<Source>(key: key, part: part))"))
        discardedCount += 1
        // The first repetition usually suffices. If it doesn't, the value changes faster than it can be fetched.
        if discardedCount > 1 { await wait(afterAttempt: discardedCount - 1, atMost: Self.maximumPause) }
        guard isWanted() else { throw Failure.cancelled }
        // Another reply has stored a value that is new enough for the callers of this load.
        let isWhole = request.isWhole
        if !request.isOfAdjacentPage,
          core.keys[id]?.state.isRefreshed(since: beganAt, isWhole: isWhole) ?? false
        {
          break
        }
        // Ends without an error if the stored value now shows that there is no such page.
        guard let next = core.request(for: part, id) else { break }
        request = next
      }
      let isOfAdjacentPage = request.isOfAdjacentPage
      update { core in
        core.endLoad(load, beganAt, id, nil)
        if !isOfAdjacentPage { core.recordLoad(of: key) }
      }
      return true
    } catch {
      update { $0.endLoad(load, beganAt, id, error) }
      throw error
    }
  }

  /// Performs one request, and has the reply judged and stored.
  ///
  /// - Returns: Whether the reply was stored. Otherwise it may be older than the stored value, or doesn't fit it.
  private func fetchAndStore(
    _ request: LoadRequest, _ id: ID, isWanted: @escaping @Sendable () -> Bool
  ) async throws(Failure) -> Bool {
    guard let requestedAt = core.keys[id]?.state.beginFetching() else { throw .signedOut }
    defer { core.keys[id]?.state.endFetching(requestedAt) }
    let (invalidationCount, networkChangeCount) = (core.keys[id]?.invalidationCount ?? 0, core.network.changeCount)
    let fetched: FetchedPages<Value>?
    do throws(Source.Failure) {
      fetched = try await fetch(request, id, isWanted: isWanted)
    } catch {
      if Task.isCancelled { throw .cancelled }
      let disposition = core.capabilities.source.disposition(of: error)
      if disposition.isAnswer { update { $0.recordAnswer(toRequestAfter: networkChangeCount) } }
      if disposition == .refused, update({ $0.recordRefusal(of: request, id) }) {
        _ = try await judge(id, requestedAt) { .refused(number: $0) }
      }
      throw .server(error)
    }
    update { $0.recordAnswer(toRequestAfter: networkChangeCount) }
    if core.keys[id] == nil { throw .signedOut }
    guard let fetched else { throw .cancelled }
    switch update({ $0.receive(fetched, request, id) }) {
    case .keepStored: return true
    case .judge(let makeContent, let isFetched):
      let isAccepted = try await judge(id, requestedAt, makeContent)
      if isAccepted, isFetched, !request.isOfAdjacentPage {
        core.keys[id]?.recordReply(toRequestAfter: invalidationCount)
      }
      return isAccepted
    }
  }

  /// Makes the requests of a load; returns `nil` if it is no longer wanted.
  private func fetch(
    _ request: LoadRequest, _ id: ID, isWanted: @escaping @Sendable () -> Bool
  ) async throws(Source.Failure) -> FetchedPages<Value>? {
    guard case .pages(let pages) = request, let paging = core.capabilities.paging else {
      return FetchedPages(value: try await core.capabilities.source.fetch(id.key), isGivenUp: false, isEndless: false)
    }
    return try await paging.fetch(pages, core.pageLoad(id, isWanted: isWanted))
  }

  /// Has a reply judged and stored.
  ///
  /// - Returns: Whether the reply was accepted.
  private func judge(
    _ id: ID, _ requestedAt: Core.Timestamp, _ makeContent: (_ number: Int) -> Core.ReplyContent
  ) async throws(Failure) -> Bool {
    fetches.open(core.lastFetchNumber + 1)
    let number = update { $0.judge(makeContent, requestedAt: requestedAt, id) }
    return try await fetches.outcome(of: number).get()
  }

  /// Fetches an observed value.
  func fetchObserved(_ request: ObservedLoadingState<Key>.Request) async {
    let key = request.key
    let mayHaveJoined = core.keys[key]?.isLoading(core.defaultPart) ?? false
    do throws(Failure) {
      let wasServerAsked =
        switch request {
        case .refresh: try await fetchUnlessFresh(key, nil)
        case .reload: try await fetch(key, nil)
        }
      update { $0.endFetch(request, wasServerAsked ? .fetched : .wasFresh, mayHaveJoined: false) }
    } catch {
      // Only the release of the repository cancels this task.
      if Task.isCancelled { return }
      // The state of an open key contains the error. If the key couldn't be opened, the failure of the store is
      // reported as an event instead.
      if case .store(let error) = error, !(core.keys[key]?.isOpen ?? false) { events.emit(.storeFailed(error)) }
      update { $0.endFetch(request, .failed, mayHaveJoined: mayHaveJoined) }
    }
  }

  /// Fetches the whole value while confirmed mutations wait for it.
  func fetchWhole(_ id: ID) async {
    var attempt = 0
    while core.needsWholeValue(id), !Task.isCancelled {
      do throws(Failure) {
        let wasServerAsked = try await fetch(id.key, .whole)
        core.keys[id]?.recovery = .fetching
        attempt = 0
        if wasServerAsked { update { $0.endWaitsAfterFetch() } }
      } catch {
        guard core.needsWholeValue(id) else { break }
        core.keys[id]?.recovery = .failing
        attempt += 1
        update { $0.recordThatAttemptsEnded(id) }
        await wait(afterAttempt: attempt)
      }
    }
    update { $0.endFetchOfWhole(id) }
  }

  // MARK: - Replies

  /// Stores the replies that have arrived for a key, one write after the other.
  func writeReplies(of id: ID) async {
    var next = core.beginWriting(id)
    if next == nil { update { $0.endWriting(id) } }
    while let write = next {
      do throws(StoreError) {
        try await store(write, id)
        next = update { $0.endWrite(write, id) }
      } catch {
        next = await recover(from: error, write, id) ? core.beginWriting(id) : nil
        if next == nil { update { $0.endWriting(id) } }
      }
    }
  }

  private func store(_ write: Core.Write, _ id: ID) async throws(StoreError) {
    if write.isEmpty {
      // Without a commit there is no new base, so the revision and the tag aren't used.
      let commit = StoreCommit(revision: 0, tag: StoreTag(), savedAt: configuration.now())
      update { $0.apply(write, commit, id) }
    } else if let batch = core.makeCommit(of: write, id) {
      defer { core.writes[batch.tag] = nil }
      let commit = try await commit(batch)
      // The feed of a released repository doesn't show the commit.
      if feed.hasEnded { update { $0.applyWrite(commit) } }
      if let value = write.value { await makeRoom(afterSaving: value, id, commit) }
    }
  }

  /// Handles a failed write.
  ///
  /// - Returns: Whether to write again immediately.
  private func recover(from error: StoreError, _ write: Core.Write, _ id: ID) async -> Bool {
    // A released repository doesn't learn what others have stored. The next one on the store sends the mutations again.
    if case .preconditionFailed(let keyName) = error, !feed.hasEnded {
      do throws(StoreError) {
        if try await applyStored(id, keyName, after: write) { return true }
      } catch let loadError {
        return await recover(from: loadError, write, id)
      }
    }
    switch update({ $0.recordFailure(of: write, id, error) }) {
    case .writeAgain: return true
    case .end: return false
    case .writeLater(let attempt):
      start { engine in await engine.writeLater(id.key, afterAttempt: attempt) }
      return false
    case .return(let mutations):
      for mutation in mutations { await save(mutation) }
      return update { $0.discardReplies(to: mutations, id) }
    case .refuse(let mutations):
      for mutation in mutations {
        await refuse(mutation, .unstorable(error), .store(error), isOutcomeUnknown: true)
      }
      return update { $0.discardReplies(to: mutations, id) }
    }
  }

  private func writeLater(_ key: Key, afterAttempt attempt: Int) async {
    await wait(afterAttempt: attempt)
    // The repository is released. The next repository sends the mutations again.
    if Task.isCancelled { return }
    update { core in if let id = core.keys[key]?.id { core.write(id) } }
  }

  /// Applies what is stored now, so that the next write judges the replies against it.
  ///
  /// - Returns: Whether the next write may succeed.
  private func applyStored(
    _ id: ID, _ failedKey: StoreKeyName, after write: Core.Write
  ) async throws(StoreError) -> Bool {
    try await catchUp()
    guard let state = core.keys[id] else { return false }
    if failedKey == state.storeKey.keyName, state.state.base?.tag == write.baseTag {
      // The feed hasn't reported the stored value. Usually the reason is that this program can't use it.
      if let stored = try await load(state.storeKey) {
        core.keys[id]?.receive(.saved(state.storeKey, stored))
        if core.keys[id]?.state.base?.tag == write.baseTag { return false }
      } else {
        core.keys[id]?.state.removeBase()
      }
    }
    update { $0.judgeAgain(id) }
    return core.keys[id] != nil
  }
}
