internal import DataStore
internal import Foundation

/// One key of a repository while it is observed, written, or has pending mutations: its state, and how it is loaded.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class SyncCell<Source: RepositorySource> {
  typealias Failure = RepositoryError<Source.Failure>
  typealias State = RepositoryState<Source.Value, Failure>

  /// What a load fetches.
  enum Part: Hashable, Sendable {
    /// The whole value, in the place of what is stored.
    case whole
    /// The newest page, joined to what is stored.
    case newestPage
    /// The first page of what is stored, joined to it. It is the newest one unless pages before it were dropped.
    case firstPage
    case nextPage
    case previousPage
  }

  /// What is remembered of a key when its cell is released.
  struct Residue {
    fileprivate let fetchedAt: Date?
    fileprivate let failure: Failure?
    fileprivate let refusedCursor: String?
    fileprivate let tag: StoreTag?
    fileprivate let newestValueNumber: UInt64?
    fileprivate var isInvalidated: Bool

    /// Makes the value stale.
    mutating func invalidate() {
      isInvalidated = true
    }
  }

  /// How a whole value is being fetched for confirmed mutations.
  enum Recovery {
    case fetching
    /// The last fetch failed, and another one follows.
    case failing
  }

  /// One load of many, so that one that was given up doesn't end the one that came after it.
  struct Load {
    fileprivate let part: Part
    fileprivate let number: Int
  }

  /// All of a ``RepositoryState`` that is cheap to compare.
  private struct Flags: Equatable {
    var version: UInt64
    var pendingVersion: UInt64
    var fetchedAt: Date?
    var isPending: Bool
    var isLoading: Bool
    var isLoadingMore: Bool
    var isLoadingPrevious: Bool
    var failureCount: Int
  }

  let key: Source.Key
  let storeKey: StoreKey<Source.Value>
  var state: SyncState<Source.Value, Source.Mutation>

  /// Whether the base is known.
  var isOpen = false

  /// Makes sure that the key is opened once.
  let opening = AsyncSerialQueue()

  /// Ends the watch of the store.
  var endWatching: (@Sendable () -> Void)?

  /// Whether the key's user has signed out: nothing of the cell is shown or stored any more.
  private(set) var isClosed = false

  /// The number of calls that need the cell.
  var useCount = 0

  /// Whether the key is in the list of those that nothing needed.
  var isInIdleList = false

  /// Whether the replies that arrive are being written.
  var isWriting = false

  /// External changes that were reported while a write was being made.
  var heldChanges: [StoreChange<Source.Value>] = []

  /// The mutations whose records another process was seen to remove while a write was being made.
  var heldRemovals: [MutationID] = []

  /// The number of writes in a row that failed.
  var failedWrites = 0

  /// How a whole value is being fetched for confirmed mutations; `nil` if none is.
  var recovery: Recovery?

  /// Where the server refused to give the next page, if it did.
  var refusedCursor: String?

  /// Whether the server refused to give the first stored page again.
  var isFirstPageRefused = false

  /// When the value was fetched.
  private(set) var fetchedAt: Date?

  /// Counts calls of ``invalidate()``.
  private(set) var invalidationCount = 0
  /// Those that happened before the request began whose reply is stored.
  private var answeredInvalidationCount = 0

  private var lastLoad = 0
  /// The newest load of each part that has not ended; an older one of the same part was given up.
  private var loads: [Part: Int] = [:]
  /// How the last load ended while another one was in flight, unless it was cancelled.
  private var outcome: Result<Void, Failure>?
  private var failure: Failure?
  private var failureCount = 0
  private var sentFlags: Flags?

  /// The version of the value when the key was opened.
  private(set) var openVersion: UInt64 = 0

  /// The version of the value that was sent to observers last.
  var sentVersion: UInt64 = 0

  /// The version of the pending mutations that was sent to observers last.
  var sentPendingVersion: UInt64 = 0

  init(key: Source.Key, storeKey: StoreKey<Source.Value>, _ capabilities: SourceCapabilities<Source>) {
    self.key = key
    self.storeKey = storeKey
    state = SyncState(
      empty: capabilities.sending?.empty, isPaged: capabilities.paging != nil, isComplete: capabilities.isComplete)
  }

  /// The channel of all keys' observers that has what is visible.
  var newestValueNumber: UInt64?

  /// What is remembered when the cell is released.
  var residue: Residue {
    Residue(
      fetchedAt: fetchedAt, failure: failure, refusedCursor: refusedCursor, tag: state.base?.tag,
      newestValueNumber: newestValueNumber, isInvalidated: isInvalidated)
  }

  /// Whether nothing needs the cell but its observers.
  var isIdle: Bool {
    useCount == 0 && !isWriting && recovery == nil && loads.isEmpty && !state.isPending
  }

  /// Takes what is stored for the base, when the key is opened.
  ///
  /// - Parameter residue: What was remembered of an earlier cell of the key. Its times count only for the value it had.
  /// - Returns: Whether they do.
  func open(_ stored: StoredValue<Source.Value>?, _ residue: Residue?) -> Bool {
    state.open(stored.map { .init($0) })
    fetchedAt = stored?.savedAt
    let knows = residue.map { $0.tag == stored?.tag } ?? false
    if let residue, knows {
      (fetchedAt, refusedCursor, newestValueNumber) = (
        residue.fetchedAt, residue.refusedCursor, residue.newestValueNumber
      )
      if residue.isInvalidated { invalidate() }
      setFailure(residue.failure)
    }
    openVersion = state.visibleVersion
    isOpen = true
    return knows
  }

  /// Lays a mutation over the base that is in the queue.
  ///
  /// - Parameters:
  ///   - entry: The mutation.
  ///   - isSentHere: Whether this repository sends it. Otherwise the one that does decides whether it is in conflict,
  ///     because this one may not know the value that it was made on.
  func restore(_ entry: MutationQueue<Source>.Entry, isSentHere: Bool) {
    state.restore(entry.id, entry.record.mutation)
    if !isSentHere { leaveDecision(on: entry.id) }
  }

  /// Lets another repository decide whether a mutation is in conflict, as the server does while one is in flight.
  func leaveDecision(on id: MutationID) {
    _ = state.beginSending(id)
  }

  /// Ends ``leaveDecision(on:)``, because this repository sends the mutation from now on.
  func beginDeciding(on id: MutationID) {
    state.fail(id, isOutcomeUnknown: false)
  }

  /// Ends all that the cell does, because its user has signed out.
  func close() {
    isClosed = true
    endWatching?()
  }

  /// Records an external change.
  func receive(_ change: StoreChange<Source.Value>) {
    state.receiveExternal(change.stored.map { .init($0) }, revision: change.revision)
    if let stored = change.stored { fetchedAt = stored.savedAt }
  }

  /// Records that a fetched value is the base.
  func recordFetch(at time: Date) {
    fetchedAt = time
    (refusedCursor, isFirstPageRefused) = (nil, false)
  }

  // MARK: - Loading

  /// Makes the value stale.
  func invalidate() {
    invalidationCount += 1
  }

  /// Whether the value was made stale, however young it is.
  var isInvalidated: Bool { isInvalidated(before: invalidationCount) }

  /// Whether the value was made stale by one of the first calls of ``invalidate()``.
  func isInvalidated(before count: Int) -> Bool { answeredInvalidationCount < count }

  /// Records that a reply was stored.
  ///
  /// - Parameter count: The ``invalidationCount`` when the request began. After another call the reply is stale too.
  func recordReply(toRequestAfter count: Int) {
    answeredInvalidationCount = max(answeredInvalidationCount, count)
  }

  /// Whether a part is being fetched.
  func isLoading(_ part: Part) -> Bool { loads[part] != nil }

  func beginLoading(_ part: Part) -> Load {
    lastLoad += 1
    if loads.isEmpty { outcome = nil }
    loads[part] = lastLoad
    setFailure(nil)
    return Load(part: part, number: lastLoad)
  }

  /// Ends a load.
  ///
  /// The state tells how when no other one is in flight.
  func endLoading(_ load: Load, _ error: Failure?) {
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

  /// Records why the last fetch failed; `nil` if it didn't.
  func setFailure(_ failure: Failure?) {
    if self.failure == nil, failure == nil { return }
    self.failure = failure
    failureCount += 1
  }

  // MARK: - What observers see

  /// Returns what to send to observers of the state, if it is new.
  ///
  /// - Parameter paging: Says whether a value has a next and a previous page.
  func takeState(_ paging: SourceCapabilities<Source>.Paging?) -> State? {
    let flags = flags
    if flags == sentFlags { return nil }
    sentFlags = flags
    return currentState(paging)
  }

  /// What there is to show.
  func currentState(_ paging: SourceCapabilities<Source>.Paging?) -> State {
    let flags = flags
    let hasMore = state.visible.flatMap { paging?.nextCursor($0) } != nil
    let hasPrevious = state.visible.flatMap { paging?.backward?.previousCursor($0) } != nil
    return State(
      value: state.visible, fetchedAt: state.base == nil ? nil : flags.fetchedAt, isPending: flags.isPending,
      isLoading: flags.isLoading, isLoadingMore: flags.isLoadingMore, hasMore: hasMore,
      isLoadingPrevious: flags.isLoadingPrevious, hasPrevious: hasPrevious, failure: failure)
  }

  /// What there is to report, besides what the engine knows.
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

  private var flags: Flags {
    Flags(
      version: state.visibleVersion, pendingVersion: state.pendingVersion, fetchedAt: fetchedAt,
      isPending: state.isPending,
      isLoading: isLoading(.whole) || isLoading(.newestPage) || isLoading(.firstPage),
      isLoadingMore: isLoading(.nextPage), isLoadingPrevious: isLoading(.previousPage), failureCount: failureCount)
  }
}

extension SyncState.Base where Value: Codable {
  init(_ stored: StoredValue<Value>) {
    self.init(value: stored.value, tag: stored.tag, revision: stored.revision)
  }
}
