internal import DataStore
internal import Foundation

/// Identifies the state of a key that is in use.
///
/// A key whose user has signed out and in again has another state, so a call that began before finds none.
struct KeyID<Key: RepositoryKey>: Hashable, Sendable {
  let key: Key
  let number: UInt64
}

/// The state of a key that is in use, or was recently: its value, its pending mutations, and its loads.
struct KeyState<Source: RepositorySource> {
  typealias Failure = RepositoryError<Source.Failure>
  typealias State = RepositoryState<Source.Value, Failure>

  /// The part of a value that a load fetches.
  enum Part: Hashable, Sendable {
    /// The whole value, which replaces the stored one.
    case whole
    /// The newest page, joined to the stored pages.
    case newestPage
    /// The first stored page, fetched again and joined to the other stored pages.
    ///
    /// The newest page is fetched instead if no page comes before the first stored one, or if the server has refused to
    /// return the first stored page. The same holds if the server has refused the page after the last stored element:
    /// the stored elements can't be continued then, and the newest page replaces them.
    case firstPage
    case nextPage
    case previousPage
  }

  /// The part of a key's state that is remembered when the key is released.
  struct Residue {
    fileprivate let fetchedAt: Date?
    fileprivate let failure: Failure?
    fileprivate let refusedCursor: String?
    fileprivate let tag: StoreTag?
    fileprivate let everyValueChannelNumber: UInt64?
    fileprivate var isInvalidated: Bool

    /// Marks the value as stale.
    mutating func invalidate() {
      isInvalidated = true
    }
  }

  /// The state of fetching a whole value for confirmed mutations; see ``SyncCore/needsWholeValue(_:)``.
  enum Recovery {
    case fetching
    /// The last fetch failed, and will be repeated.
    case failing
  }

  /// Identifies a load, so that the end of an abandoned load doesn't end a later one.
  struct Load {
    fileprivate let part: Part
    fileprivate let number: Int
  }

  /// Stands for a ``RepositoryState`` in comparisons, because numbers are cheaper to compare than values and errors.
  private struct Summary: Equatable {
    var visibleVersion: UInt64
    var pendingVersion: UInt64
    var fetchedAt: Date?
    var isPending: Bool
    var isLoading: Bool
    var isLoadingMore: Bool
    var isLoadingPrevious: Bool
    var failureVersion: Int
  }

  let id: KeyID<Source.Key>
  let storeKey: StoreKey<Source.Value>
  @Boxed var state: SyncState<Source.Value, Source.Mutation>

  /// Whether the base has been read from the store.
  var isOpen = false

  /// The number of calls that need the key.
  var useCount = 0

  /// Whether the key is in the list of idle keys.
  var isInIdleList = false

  /// Whether a task is writing the replies that have arrived, one write after the other.
  var isWriting = false

  /// Whether a mutation of the key is one that this program can't read; see ``HeldMutation``.
  var hasHeldMutation = false

  /// Whether the last write found that a newer version of the program has stored the value.
  var hasFutureValue = false

  /// The number of consecutive failed writes, not counting those that were repeated immediately.
  var failedWrites = 0

  /// The state of fetching a whole value for confirmed mutations; `nil` if none is being fetched.
  var recovery: Recovery?

  /// The cursor for which the server refused to return the next page, if it did.
  ///
  /// An earlier cursor of the value may remain here; see ``isNextPageRefused``.
  var refusedCursor: String?

  /// Whether the server refused to return the first stored page when it was fetched again.
  var isFirstPageRefused = false

  /// The time at which the value was fetched.
  ///
  /// If another repository saved the value, or nothing is remembered of its fetch, this is the time at which the value
  /// was last saved.
  private(set) var fetchedAt: Date?

  /// The number of calls of ``invalidate()``.
  private(set) var invalidationCount = 0
  /// The greatest ``invalidationCount`` at the beginning of a request whose reply was stored.
  private var answeredInvalidationCount = 0

  /// Returns the cursor of the page after a value; `nil` if there is none.
  private let nextCursor: (Source.Value) -> String?

  private var lastLoadNumber = 0
  /// The number of the newest unfinished load of each part; older loads of the same part were abandoned.
  private var loads: [Part: Int] = [:]
  /// The result of the load that ended last among overlapping loads; cancelled loads don't count.
  private var outcome: Result<Void, Failure>?
  private var failure: Failure?
  /// The number of changes of ``failure``.
  private var failureVersion = 0
  private var sentSummary: Summary?

  /// The version of the stored value with which the key was opened; `nil` if there was none, or if observers see it
  /// with mutations.
  private(set) var openVersion: UInt64?

  /// The version of the value that was sent to observers last; `nil` if none was sent since the key was opened.
  var sentVersion: UInt64?

  /// The version of the pending mutations that was sent to observers last.
  var sentPendingVersion: UInt64 = 0

  init(_ id: KeyID<Source.Key>, _ storeKey: StoreKey<Source.Value>, _ capabilities: SourceCapabilities<Source>) {
    (self.id, self.storeKey) = (id, storeKey)
    nextCursor = { capabilities.paging?.nextCursor($0) }
    state = SyncState(empty: capabilities.sending?.empty, isPaged: capabilities.paging != nil)
  }

  /// The number of the channel that last received the visible value for observers of all keys; `nil` if none did.
  ///
  /// ``SyncChannels/everyValue`` opens a new channel, with another number, for observers that come after all earlier
  /// ones have gone. The value may have to be sent again to that channel.
  var everyValueChannelNumber: UInt64?

  var key: Source.Key { id.key }

  /// The state that outlives this one.
  var residue: Residue {
    Residue(
      fetchedAt: fetchedAt, failure: failure, refusedCursor: refusedCursor, tag: state.base?.tag,
      everyValueChannelNumber: everyValueChannelNumber, isInvalidated: isInvalidated)
  }

  /// Whether nothing but observers needs the key.
  var isIdle: Bool {
    useCount == 0 && !isWriting && recovery == nil && loads.isEmpty && !state.isPending
  }

  /// Sets the base to the stored value, when the key is opened.
  ///
  /// - Parameter residue: What is remembered of the key's earlier state. It applies only if the stored value is
  ///   unchanged.
  /// - Returns: Whether the remaining state applies.
  mutating func open(_ stored: StoredValue<Source.Value>?, _ residue: Residue?) -> Bool {
    state.open(stored.map { .init($0) })
    fetchedAt = stored?.savedAt
    let isResidueValid = residue.map { $0.tag == stored?.tag } ?? false
    if let residue, isResidueValid {
      (fetchedAt, refusedCursor, everyValueChannelNumber) = (
        residue.fetchedAt, residue.refusedCursor, residue.everyValueChannelNumber
      )
      if residue.isInvalidated { invalidate() }
      setFailure(residue.failure)
    }
    // The version that the stored value gets when it becomes visible.
    openVersion = stored == nil ? nil : state.visibleVersion + 1
    isOpen = true
    return isResidueValid
  }

  /// Applies a queued mutation on top of the base.
  ///
  /// - Parameters:
  ///   - entry: The mutation.
  ///   - isSentHere: Whether this repository sends the mutation. Otherwise the repository that sends it decides whether
  ///     it is in conflict, because this repository may not know the value that the mutation was made for.
  mutating func restore(_ entry: MutationQueue<Source.Key, Source.Mutation>.Entry, isSentHere: Bool) {
    state.restore(entry.id, entry.mutation)
    openVersion = nil
    if !isSentHere { deferDecision(on: entry.id) }
  }

  /// Lets another repository decide whether a mutation is in conflict, as the server does for a mutation in flight.
  mutating func deferDecision(on id: MutationID) {
    _ = state.beginSending(id)
  }

  /// Reverses ``deferDecision(on:)``, because this repository now sends the mutation.
  mutating func beginDeciding(on id: MutationID) {
    // The mutation is waiting again, as after an attempt that has failed.
    state.fail(id)
  }

  /// Records an external change.
  mutating func receive(_ change: StoreChange<Source.Value>) {
    guard state.receiveExternal(change.stored.map { .init($0) }, revision: change.revision) else { return }
    if let stored = change.stored { fetchedAt = stored.savedAt }
  }

  /// Records that the base is now a value that the server sent, or includes a newest or first page that the server
  /// sent.
  ///
  /// A refusal of the next page stays recorded while the value ends at the refused cursor, because the server still
  /// hasn't returned the page after that cursor.
  mutating func recordFetch(at time: Date) {
    (fetchedAt, isFirstPageRefused) = (time, false)
    if !isNextPageRefused { refusedCursor = nil }
  }

  /// Whether the server refused to return the page after the last stored element.
  var isNextPageRefused: Bool {
    guard let refusedCursor, let base = state.base else { return false }
    return nextCursor(base.value) == refusedCursor
  }

  // MARK: - Loading

  /// Marks the value as stale.
  mutating func invalidate() {
    invalidationCount += 1
  }

  /// Whether the value is marked as stale, regardless of its age.
  var isInvalidated: Bool { isInvalidated(before: invalidationCount) }

  /// Returns whether the value is still stale because of one of the first `count` calls of ``invalidate()``.
  func isInvalidated(before count: Int) -> Bool { answeredInvalidationCount < count }

  /// Records that a reply was stored.
  ///
  /// - Parameter count: The ``invalidationCount`` when the request began. Later calls of ``invalidate()`` make the
  ///   reply stale too.
  mutating func recordReply(toRequestAfter count: Int) {
    answeredInvalidationCount = max(answeredInvalidationCount, count)
  }

  /// Returns whether a part is being fetched.
  func isLoading(_ part: Part) -> Bool { loads[part] != nil }

  mutating func beginLoading(_ part: Part) -> Load {
    lastLoadNumber += 1
    if loads.isEmpty { outcome = nil }
    loads[part] = lastLoadNumber
    setFailure(nil)
    return Load(part: part, number: lastLoadNumber)
  }

  /// Ends a load.
  ///
  /// Once no load is in flight, the state reports the error of the load that ended last, if it failed. Cancelled loads
  /// don't count.
  mutating func endLoading(_ load: Load, _ error: Failure?) {
    guard loads[load.part] == load.number else { return }
    loads[load.part] = nil
    switch error {
    case nil: outcome = .success(())
    case .cancelled: break
    case let error?: outcome = .failure(error)
    }
    guard loads.isEmpty, case .failure(let error) = outcome else { return }
    setFailure(error)
  }

  /// Sets the error of the last fetch; `nil` if it succeeded, or if another one begins.
  mutating func setFailure(_ failure: Failure?) {
    if self.failure == nil, failure == nil { return }
    self.failure = failure
    failureVersion += 1
  }

  // MARK: - Visible state

  /// Returns the state to send to observers, or `nil` if it hasn't changed since the last call.
  ///
  /// - Parameter paging: The source's support for pages, which determines whether there are a next and a previous page.
  mutating func takeState(_ paging: SourceCapabilities<Source>.Paging?) -> State? {
    let summary = summary
    if summary == sentSummary { return nil }
    sentSummary = summary
    return currentState(paging)
  }

  /// Returns the current state.
  func currentState(_ paging: SourceCapabilities<Source>.Paging?) -> State {
    let summary = summary
    let hasMore = state.visible.flatMap { paging?.nextCursor($0) } != nil
    let hasPrevious = state.visible.flatMap { paging?.backward?.previousCursor($0) } != nil
    return State(
      value: state.visible, isRead: isOpen, fetchedAt: state.base == nil ? nil : summary.fetchedAt,
      isPending: summary.isPending, isLoading: summary.isLoading, isLoadingMore: summary.isLoadingMore,
      hasMore: hasMore, isLoadingPrevious: summary.isLoadingPrevious, hasPrevious: hasPrevious, failure: failure)
  }

  /// Returns a report of the key, given the values that only the engine knows.
  ///
  /// - Complexity: Encodes the value.
  func report(isFresh: Bool, observerCount: Int, pendingCount: Int) -> RepositoryReport.KeyReport {
    RepositoryReport.KeyReport(
      key: key.storeID, userID: key.userID, fetchedAt: state.base == nil ? nil : fetchedAt, isFresh: isFresh,
      byteCount: state.visible.flatMap(Self.byteCount), observerCount: observerCount, pendingCount: pendingCount,
      isLoading: !loads.isEmpty, failure: failure.map { String(describing: $0) })
  }

  private static func byteCount(of value: Source.Value) -> Int? {
    do { return try JSONEncoder().encode(value).count } catch { return nil }
  }

  private var summary: Summary {
    Summary(
      visibleVersion: state.visibleVersion, pendingVersion: state.pendingVersion, fetchedAt: fetchedAt,
      isPending: state.isPending || hasHeldMutation,
      isLoading: isLoading(.whole) || isLoading(.newestPage) || isLoading(.firstPage),
      isLoadingMore: isLoading(.nextPage), isLoadingPrevious: isLoading(.previousPage), failureVersion: failureVersion)
  }
}

extension SyncState.Base where Value: Codable {
  init(_ stored: StoredValue<Value>) {
    self.init(value: stored.value, tag: stored.tag, revision: stored.revision)
  }
}
