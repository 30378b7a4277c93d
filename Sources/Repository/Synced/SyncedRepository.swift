public import DataStore
public import Multicast

/// Values of a server, kept on the device, observed by any number of screens, and changed at once.
///
/// ```swift
/// let comments = SyncedRepository(CommentsSource(client), store: store)
///
/// for await page in comments.values(of: postID) { show(page) }
///
/// try await comments.reload(postID)
/// try await comments.perform(.add(comment), on: postID)
/// ```
///
/// A value goes one way: the server's reply, the store, the store's changes with the pending mutations over them, the
/// observers. Nothing else reaches an observer.
///
/// - **Ordering**: Per key, no observer sees an older value after a newer one. A reply that may be older than what is
///   stored, by this process or another one, is not stored but asked for again.
/// - **Mutations** show in the step in which they are made, and stay visible until the stored value has them, the server
///   refuses them, they are cancelled, or they conflict with a newer value. They are durable before they are sent, are sent
///   in the order of their lane under an id that stays the same, and survive the end of the process at any moment.
/// - **Requests**: Callers that want the same at the same time share one request.
/// - **Cancellation** ends a call. A request is cancelled with its last caller, and a mutation goes on.
/// - **Lifetime**: What is observed doesn't keep the repository alive, and ends when it is released. What is queued stays in
///   the store, and the next repository on it sends it.
/// - **Several repositories** may be on one store, in one process or in several. Each shows what the others store and make,
///   and one of them sends the mutations of all; see ``Leadership``.
public final class SyncedRepository<Source: RepositorySource>: Sendable {
  /// Identifies a value.
  public typealias Key = Source.Key
  /// What is fetched, stored and observed.
  public typealias Value = Source.Value
  /// Why a request failed.
  public typealias Failure = Source.Failure

  let engine: SyncEngine<Source>

  /// Creates a repository, which starts to send what is queued in the store, unless another one does.
  ///
  /// - Parameters:
  ///   - source: Where values come from. If it is a ``PagedSource`` or a ``MutableSource``, the repository pages and sends.
  ///   - store: Where values and mutations are kept.
  ///   - configuration: How the repository works.
  public init(_ source: Source, store: any KeyValueStore, configuration: RepositoryConfiguration = .init()) {
    let engine = SyncEngine(source, store: store, configuration: configuration)
    self.engine = engine
    engine.tasks.start { [weak engine] in
      await engine?.followEnvironment()
      await engine?.startInBackground()
      await engine?.beginEvicting()
    }
  }

  deinit {
    engine.stop()
  }

  /// What happens, for a log or a chart: the last events, then every later one.
  public var events: MulticastStream<RepositoryEvent, Never> { engine.events.stream }

  // MARK: - Observing

  /// The values of a key: the stored one with all pending mutations over it first, if there is one, then every later one.
  public func values(of key: Key) -> ObservedValues<Value> {
    ObservedValues { [weak engine] in
      guard let engine else { return finishedStream() }
      return engine.channels.values.stream(of: key) {
        engine.tasks.start { [weak engine] in await engine?.observe(key) }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObserving(key) }
      }
    }
  }

  /// The states of a key: the present one first, then the newest after each change.
  public func states(of key: Key) -> ObservedValues<RepositoryState<Value, RepositoryError<Failure>>> {
    ObservedValues { [weak engine] in
      guard let engine else { return finishedStream() }
      return engine.channels.states.stream(of: key) {
        engine.tasks.start { [weak engine] in await engine?.observe(key) }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObserving(key) }
      }
    }
  }

  /// The values of a key, which is fetched because it is observed.
  ///
  /// ```swift
  /// for await page in comments.values(of: postID, loading: .whileObserved(every: .seconds(30))) { show(page) }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - loading: When to fetch. ``LoadingPolicy/never`` is what ``values(of:)`` does.
  public func values(of key: Key, loading: LoadingPolicy) -> ObservedValues<Value> {
    loading.schedule.map { observed({ $0.values }, .init(key: key, schedule: $0)) } ?? values(of: key)
  }

  /// The states of a key, which is fetched because it is observed; see ``values(of:loading:)``.
  public func states(
    of key: Key, loading: LoadingPolicy
  ) -> ObservedValues<RepositoryState<Value, RepositoryError<Failure>>> {
    loading.schedule.map { observed({ $0.states }, .init(key: key, schedule: $0)) } ?? states(of: key)
  }

  private func observed<Element>(
    _ channels: @escaping @Sendable (LoadingChannels<Source>) -> KeyChannels<LoadingChannels<Source>.Observed, Element>,
    _ observed: LoadingChannels<Source>.Observed
  ) -> ObservedValues<Element> {
    ObservedValues { [weak engine] in
      guard let engine else { return finishedStream() }
      return channels(engine.channels.loading).stream(of: observed) {
        engine.tasks.start { [weak engine] in await engine?.observe(observed) }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObserving(observed) }
      }
    }
  }

  // MARK: - Loading

  /// Fetches a value unless the stored one is fresh; see ``RepositoryConfiguration/freshness``.
  ///
  /// For a ``PagedSource``, fetches the newest page and joins it to what is stored. When the call returns, the value is
  /// durable, and an observer that comes now gets it. It may join a request that is in flight.
  ///
  /// - Throws: A ``RepositoryError``; then what is stored is what it was.
  public func refresh(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.refresh(key)
  }

  /// Fetches a value, as ``refresh(_:)`` does, however fresh the stored one is.
  ///
  /// - Throws: A ``RepositoryError``; then what is stored is what it was.
  public func reload(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key)
  }

  /// Makes values stale, so that the next ``refresh(_:)`` fetches them, and fetches at once those that are observed by
  /// ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
  ///
  /// A reply to a request from before is stale too. Also keys that aren't in use become stale, until the repository is
  /// released: the next one goes by the age of what is stored alone.
  ///
  /// - Complexity: O(*n* log *n*) for the keys in use and at most 4,096 that were, O(log *n*) for one key.
  public func invalidate(_ keys: KeySelection<Key>) async {
    await engine.invalidate(keys)
  }

  /// Sends at once what waits for another attempt, because the network is back for example.
  ///
  /// Also while the monitor of the network says that it is away.
  /// A time that a server named, such as by `Retry-After`, is still waited for.
  public func retryNow() async {
    await engine.retryNow()
  }

  /// Returns what the repository has and does.
  ///
  /// Keys that nothing uses aren't in it, nor is what is only stored.
  ///
  /// - Complexity: O(*n* log *n*) for the keys in use and the queued mutations; it encodes the value of each key in use.
  public func report() async -> RepositoryReport {
    await engine.report()
  }

  /// Removes values from the store that are not in use, to be fetched again when they are needed.
  ///
  /// What is observed or in use by a call, what has mutations that the server doesn't have, and what is pinned stays; see
  /// ``EvictionPolicy``. So does a value that another process stores meanwhile.
  ///
  /// - Throws: A `StoreError`; then some of the values may be removed.
  /// - Complexity: O(*n*) for the *n* values of the repository in the store, all of which it reads; O(1) for one key.
  public func evict(_ keys: KeySelection<Key>) async throws(StoreError) {
    try await engine.evict(keys)
  }

  // MARK: - Users

  /// Sends the mutations of a user again that wait for the user to sign in.
  ///
  /// Every repository on the store learns of it, so that the one that leads sends them. A user who has signed out may use
  /// the repositories again.
  ///
  /// - Parameter userID: The user; `nil` for values that belong to no user.
  public func credentialsChanged(userID: String?) async {
    await engine.signIn(userID: userID)
  }

  /// Signs a user out: erases the user's values and mutations, on the device and in every process.
  ///
  /// ```swift
  /// do {
  ///   try await comments.signOut(userID: userID, unsent: .send(within: .seconds(10)))
  /// } catch SignOutError.unsent(let count) {
  ///   askWhetherToLose(count)
  /// }
  /// ```
  ///
  /// From here on each call for a key of the user throws ``RepositoryError/signedOut``, and observers see nothing, until
  /// ``credentialsChanged(userID:)``. Replies that are in flight are discarded. What is stored is erased as
  /// `KeyValueStore.erase(where:)` does it: values, mutations in whatever state, and what was quarantined. The other
  /// users' data is not touched, except that quarantined bytes which can't be told apart by user are erased too. ``events``
  /// forgets what it told.
  ///
  /// A process that ends in between is no harm: another one goes on, or the next launch does.
  ///
  /// The store keeps a digest of the user's id and two numbers.
  ///
  /// - Parameters:
  ///   - userID: The user; see ``RepositoryKey/userID``.
  ///   - policy: What becomes of the mutations that the server doesn't have.
  /// - Throws: ``SignOutError``. After ``SignOutError/unsent(_:)`` and ``SignOutError/cancelled`` the user is signed in as
  ///   before.
  /// - Complexity: O(*n*) for the names in the store. A database is written anew.
  public func signOut(userID: String, unsent policy: UnsentPolicy) async throws(SignOutError) {
    try await engine.signOut(userID: userID, unsent: policy)
  }
}

extension SyncedRepository {
  /// The values of all keys: the newest first for a new observer, then every one of any key.
  ///
  /// - Complexity: Opens every key that is stored.
  package var everyValue: ObservedValues<Value> {
    ObservedValues { [weak engine] in
      guard let engine else { return finishedStream() }
      return engine.channels.everyValue.stream(of: engine.name) {
        engine.tasks.start { [weak engine] in await engine?.observeEvery() }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObservingEveryValue() }
      }
    }
  }

  /// The pending mutations of a key in the order in which they are applied: the present ones first, then the newest after
  /// each change.
  package func pendingMutations(of key: Key) -> ObservedValues<[Source.Mutation]> {
    ObservedValues { [weak engine] in
      guard let engine else { return finishedStream() }
      return engine.channels.pendings.stream(of: key) {
        engine.tasks.start { [weak engine] in await engine?.observe(key) }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObserving(key) }
      }
    }
  }

  /// Fetches the whole value in the place of what is stored, unless that is fresh.
  package func refreshWhole(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.refresh(key, .whole)
  }

  /// Fetches the whole value in the place of what is stored.
  package func reloadWhole(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key, .whole)
  }

  /// Sends at once all that waits, also what waits for a user to sign in.
  package func resumeAll() async {
    await engine.startInBackground()
    await engine.resumeAll()
  }
}

extension SyncedRepository where Source: PagedSource {
  /// Fetches the page behind the last stored element, and appends it without duplicates.
  ///
  /// Where there is no next page, nothing is fetched; where nothing is stored, the newest page is. After a failure, the next
  /// call asks for the same page. If the server refused the page for good, call ``reload(_:)``: the first one after that
  /// keeps the newest page alone, and the next pages lead on from there.
  ///
  /// - Throws: A ``RepositoryError``; then what is stored is what it was.
  public func loadMore(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key, .nextPage)
  }
}

extension SyncedRepository where Source: BidirectionalPagedSource {
  /// Fetches the page before the first stored element, and puts it in front without duplicates.
  ///
  /// Where there is no previous page, nothing is fetched; where nothing is stored, the newest page is. After a failure, the
  /// next call asks for the same page.
  ///
  /// - Throws: A ``RepositoryError``; then what is stored is what it was.
  public func loadPrevious(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key, .previousPage)
  }

  /// Fetches the newest page, wherever what is stored begins.
  ///
  /// It is joined to what is stored if no gap can be between the two, and replaces it otherwise.
  ///
  /// - Throws: A ``RepositoryError``; then what is stored is what it was.
  public func loadNewest(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key, .newestPage)
  }
}

extension SyncedRepository where Source: MutableSource {
  /// Makes a mutation: shows it at once, makes it durable, and sends it.
  ///
  /// Cancelling the calling task ends the call and not the mutation.
  ///
  /// - Returns: ``MutationResult/confirmed`` once the stored value has it, ``MutationResult/queued`` as soon as it has to
  ///   wait, or ``MutationResult/conflicted(_:)``.
  /// - Throws: ``RepositoryError/conflict(_:)`` if it isn't possible now, ``RepositoryError/queueFull``,
  ///   ``RepositoryError/store(_:)`` if it can't be kept, ``RepositoryError/server(_:)`` if the server refused it; then
  ///   observers see it no more. ``RepositoryError/cancelled`` if the calling task was cancelled, or the mutation by
  ///   ``PendingMutations/cancel(_:)``.
  /// - Complexity: What `apply(to:)` costs, and O(1) for each observer of the key.
  @discardableResult
  public func perform(
    _ mutation: Source.Mutation, on key: Key
  ) async throws(RepositoryError<Failure>) -> MutationResult {
    try await engine.perform(mutation, on: key)
  }

  /// The mutations that the server doesn't have, or whose value isn't stored yet.
  public var mutations: PendingMutations<Source> { PendingMutations(engine) }

  /// Waits until no mutation waits or is in flight.
  ///
  /// Those that are in conflict or refused don't count.
  ///
  /// - Throws: `CancellationError` if the calling task is cancelled first.
  public func waitForPendingMutations() async throws(CancellationError) {
    await engine.startInBackground()
    for await count in engine.liveCounts.stream where count == 0 { return }
    throw CancellationError()
  }
}

extension SyncedRepository {
  /// Creates a repository that is only read, from a closure.
  ///
  /// ```swift
  /// let profiles = SyncedRepository("profile", store: store) { (userID: String) async throws(ClientError) in
  ///   try await client.profile(of: userID)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: The collection of the values in the store.
  ///   - store: Where values are kept.
  ///   - configuration: How the repository works.
  ///   - fetch: Fetches a value.
  public convenience init<Key, Value, Failure>(
    _ name: String, store: any KeyValueStore, configuration: RepositoryConfiguration = .init(),
    fetch: @escaping @Sendable (Key) async throws(Failure) -> Value
  ) where Source == FetchSource<Key, Value, Failure> {
    self.init(FetchSource(name, fetch: fetch), store: store, configuration: configuration)
  }
}

/// What became of a mutation, as ``SyncedRepository/perform(_:on:)`` returns it.
public enum MutationResult: Hashable, Sendable {
  /// The server has it, and the value with it is stored.
  case confirmed

  /// It is durable, is shown, and will be sent, also after a relaunch: the server can't be reached, its answer can't be
  /// used, or it wants the user to sign in again.
  ///
  /// Also if another repository sends it and doesn't answer for ten seconds, or says that the server refused it. Then it is
  /// listed as ``PendingMutation/Standing/refused(reason:)``.
  case queued

  /// It isn't possible on the server's present value. It has no effect and waits for ``PendingMutations/resolve(_:_:)``.
  case conflicted(MutationID)
}
