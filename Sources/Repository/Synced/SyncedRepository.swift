public import DataStore
public import Multicast

/// A repository of server values that are stored on the device, sent to any number of observers, and changed
/// optimistically.
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
/// Values flow in one direction. The server's reply is stored, the pending mutations are applied on top of the stored
/// value, and the result is sent to the observers. A value reaches an observer in no other way.
///
/// - **Ordering**: For each key, no observer sees an older value after a newer one, whichever processes stored them. A
///   fetched value that may be older than the stored one is discarded and fetched again.
/// - **Mutations** are visible as soon as ``perform(_:on:)`` applies them. They stay visible until the stored value
///   includes them, they are refused or cancelled, they conflict with a newer value, or their user signs out. They are
///   durable before they are sent, and from then on survive an exit, a crash or `SIGKILL` at any moment. The mutations
///   of a lane are sent in order, each under the same id for all attempts; see ``MutableSource/orderingKey(of:on:)``.
/// - **Requests**: Concurrent calls that need the same request share it.
/// - **Cancellation** ends a call. A request is cancelled when its last caller is cancelled; a mutation isn't cancelled
///   with its caller.
/// - **Lifetime**: A sequence of observed values doesn't keep the repository alive, and finishes when the repository is
///   released. Queued mutations stay in the store, and the next repository on the store sends them.
/// - **Several repositories** can use one store, in one process or in several. Each shows the values and mutations of
///   the others, and one of them sends the mutations of all; see ``Leadership``.
public final class SyncedRepository<Source: RepositorySource>: Sendable {
  /// The type of the keys.
  public typealias Key = Source.Key
  /// The type of the fetched, stored and observed values.
  public typealias Value = Source.Value
  /// The error of a failed request.
  public typealias Failure = Source.Failure

  let engine: SyncEngine<Source>

  /// Creates a repository and starts sending the mutations that are queued in the store, unless another repository
  /// leads.
  ///
  /// - Parameters:
  ///   - source: The source of the values. If it is a ``PagedSource`` or a ``MutableSource``, the repository also loads
  ///     pages or sends mutations.
  ///   - store: The store that keeps the values and the mutations.
  ///   - configuration: The settings of the repository.
  public init(_ source: Source, store: any KeyValueStore, configuration: RepositoryConfiguration = .init()) {
    let engine = SyncEngine(source, store: store, configuration: configuration)
    self.engine = engine
    engine.tasks.start { [weak engine] in
      await engine?.observeEnvironment()
      await engine?.startInBackground()
      await engine?.beginEvicting()
    }
  }

  deinit {
    engine.stop()
  }

  /// The repository's events, for logging and metrics: a replay of the most recent ones, then every later one.
  public var events: MulticastStream<RepositoryEvent, Never> { engine.events.stream }

  // MARK: - Reading

  /// Returns the current value of a key, or `nil` if there is none.
  ///
  /// It is the value that a new observer of ``values(of:)`` receives first: the stored value with all pending mutations
  /// applied. The call reads the store unless the key is in use or was recently, and fetches nothing. Unlike
  /// ``values(of:)``, it also answers if nothing is stored.
  ///
  /// Cancelling the calling task doesn't end the call, which takes as long as the store needs to read the value.
  ///
  /// - Throws: ``RepositoryError/store(_:)`` if the store can't be read; ``RepositoryError/signedOut`` after the user
  ///   has signed out.
  /// - Complexity: That of the first observer of a key: a load from the store, and `apply(to:)` for each pending
  ///   mutation of the key. O(1) if the key is in use or was recently.
  public func value(of key: Key) async throws(RepositoryError<Failure>) -> Value? {
    try await engine.value(of: key)
  }

  /// Returns the current state of a key, after the store was read.
  ///
  /// The call reads the store, and treats cancellation, as ``value(of:)`` does, but doesn't throw. If the store can't
  /// be read, or the user has signed out, ``RepositoryState/presence`` is ``RepositoryState/Presence/notRead``, and
  /// ``RepositoryState/failure`` is the reason.
  public func state(of key: Key) async -> RepositoryState<Value, RepositoryError<Failure>> {
    await engine.state(of: key)
  }

  // MARK: - Observing

  /// The values of a key: the current value first, if there is one, then every later one.
  ///
  /// The current value is the stored value with all pending mutations applied. If there is none, the first element is
  /// the first value that is stored, fetched or changed; ``value(of:)`` and ``states(of:)`` also say that there is
  /// none.
  ///
  /// While the store can't be read, for example because the device is locked, the repository tries again after the
  /// delays of the ``RetryPolicy``, and at each call of ``retryNow()``. The same holds for all other sequences of this
  /// type.
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

  /// The states of a key: the current state first, then the newest state after each change.
  ///
  /// The first state is sent when the store was read, so no state says that there is no value before that is known. If
  /// the store can't be read, or the user has signed out, the state says why; see ``RepositoryState/presence``. Another
  /// state follows as soon as the store can be read; see ``values(of:)``.
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

  /// The values of a key, fetched according to a policy while they are observed.
  ///
  /// ```swift
  /// for await page in comments.values(of: postID, loading: .whileObserved(every: .seconds(30))) { show(page) }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - loading: The rule for when to fetch. ``LoadingPolicy/never`` is equivalent to ``values(of:)``.
  public func values(of key: Key, loading: LoadingPolicy) -> ObservedValues<Value> {
    guard let schedule = loading.schedule else { return values(of: key) }
    return observedValues({ $0.values }, .init(key: key, schedule: schedule))
  }

  /// The states of a key, fetched according to a policy while they are observed; see ``values(of:loading:)``.
  public func states(
    of key: Key, loading: LoadingPolicy
  ) -> ObservedValues<RepositoryState<Value, RepositoryError<Failure>>> {
    guard let schedule = loading.schedule else { return states(of: key) }
    return observedValues({ $0.states }, .init(key: key, schedule: schedule))
  }

  private func observedValues<Element>(
    _ select: @escaping @Sendable (LoadingChannels<Source>) -> KeyChannels<LoadingChannels<Source>.Observed, Element>,
    _ observed: LoadingChannels<Source>.Observed
  ) -> ObservedValues<Element> {
    ObservedValues { [weak engine] in
      guard let engine else { return finishedStream() }
      return select(engine.channels.loading).stream(of: observed) {
        engine.tasks.start { [weak engine] in await engine?.observe(observed) }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObserving(observed) }
      }
    }
  }

  // MARK: - Loading

  /// Fetches a value unless the stored one is fresh; see ``RepositoryConfiguration/freshness``.
  ///
  /// For a ``PagedSource``, this fetches the newest page and joins it to the stored pages, which stay as they are; see
  /// ``PagedSource`` for what happens if they can't follow it. For a ``BidirectionalPagedSource``, this fetches the
  /// first stored page. A change of an element on another page isn't noticed: call ``reloadLoadedPages(_:)`` for that.
  /// When the call returns, the value is durable, and a new observer receives it. The call may join a request that is
  /// in flight.
  ///
  /// A reply that may be older than the stored value is joined with the changes that were confirmed meanwhile, if they
  /// can be applied to it again. Otherwise the fetch is repeated: once immediately, then with the growing pauses of the
  /// ``RetryPolicy``, but at most two seconds.
  ///
  /// A failed fetch doesn't change the stored value, with one exception. If the server refuses to return a whole value,
  /// the mutations that it has confirmed are applied to the stored value, because no fetched value will include them.
  ///
  /// If the call is cancelled, the request continues for its other callers, and a reply that has already arrived is
  /// still stored.
  ///
  /// - Throws: ``RepositoryError/server(_:)``, ``RepositoryError/store(_:)``, ``RepositoryError/signedOut`` or
  ///   ``RepositoryError/cancelled``.
  public func refresh(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.refresh(key)
  }

  /// Fetches a value as ``refresh(_:)`` does, even if the stored one is fresh.
  ///
  /// - Throws: The errors of ``refresh(_:)``.
  public func reload(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key)
  }

  /// Marks values as stale, so that the next ``refresh(_:)`` fetches them.
  ///
  /// Values that are observed with ``LoadingPolicy/whileObserved(stopTimeout:every:)`` are fetched as soon as the app
  /// is active and the network is available. The reply to a request that began before this call is stale too, and so
  /// are selected values whose keys aren't in use. The marks last until this repository is released: a later one judges
  /// freshness by the age of the stored value alone.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of keys in use plus at most 4,096 recently used ones; O(log
  ///   *n*) for a single key.
  public func invalidate(_ keys: KeySelection<Key>) async {
    await engine.invalidate(keys)
  }

  /// Immediately sends the mutations that wait for another attempt.
  ///
  /// Call it, for example, when the app knows that the network is back. The mutations are sent even while the network
  /// monitor reports that the network is unavailable. A delay that a server requested, such as with `Retry-After`, is
  /// still respected. What is observed and could not be read from the store is read again.
  ///
  /// If the repository has considered the network unavailable until now, it also fetches the values that are observed
  /// with a loading policy.
  public func retryNow() async {
    await engine.retryNow()
  }

  /// Returns a report of the repository's contents and activity.
  ///
  /// The report includes the keys that are in use, a few that were used recently, and those with mutations that are
  /// waiting or in flight. It doesn't include other keys, even if their values are stored.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of keys in use plus the number of queued mutations. The
  ///   value of each key in use is encoded to determine its size.
  public func report() async -> RepositoryReport {
    await engine.report()
  }

  /// Removes the selected values from the store, except those that are in use or pinned.
  ///
  /// The next ``refresh(_:)`` fetches a removed value again.
  ///
  /// A value stays if it is observed, in use by a call or pinned, or if it has pending mutations; see
  /// ``EvictionPolicy``. It also stays if another repository of the same source observes it in this process, on the
  /// same store or on another store over the same place. A value that another process stores during the call stays too.
  ///
  /// Observers in other processes don't keep a value: it is removed for them too. The place of a store of your own is
  /// known only if it is a class, an actor or a `ForwardingStore`.
  ///
  /// - Throws: A `StoreError`. Some of the values may have been removed by then.
  /// - Complexity: O(*n*), where *n* is the number of the repository's stored values, all of which are read; O(1) for a
  ///   single key.
  public func evict(_ keys: KeySelection<Key>) async throws(StoreError) {
    try await engine.evict(keys)
  }

  // MARK: - Users

  /// Resumes sending the mutations that wait for a user to sign in.
  ///
  /// Every repository on the store is notified, so that the one that leads sends them. A user who has signed out can
  /// use the repositories again. Cancelling the calling task has no effect.
  ///
  /// - Parameter userID: The id of the user; `nil` for values that belong to no user.
  public func credentialsChanged(userID: String?) async {
    await engine.signIn(userID: userID)
  }

  /// Signs a user out, and erases the user's values and mutations on the device and in every process.
  ///
  /// ```swift
  /// do {
  ///   try await comments.signOut(userID: userID, unsent: .send(within: .seconds(10)))
  /// } catch SignOutError.unsent(let count) {
  ///   askWhetherToLose(count)
  /// }
  /// ```
  ///
  /// As soon as this call has begun, each new call that fetches or changes a value of the user throws
  /// ``RepositoryError/signedOut``. New calls are possible again when this call fails with the user still signed in, or
  /// after the next call of ``credentialsChanged(userID:)``.
  ///
  /// After the sign-out, observers see no values of the user, and replies that are in flight are discarded. The stored
  /// data is erased as described for `KeyValueStore.erase(where:)`: values, mutations in any state, and quarantined
  /// bytes. The data of other users stays, except that quarantined bytes are erased too if their user can't be
  /// determined. ``events`` no longer replays earlier events.
  ///
  /// What has already been delivered can't be taken back. An observer that is behind still receives the values that are
  /// buffered for it, and an ``Observed`` object keeps its last value. Cancel such observers, and release such objects,
  /// when the user signs out.
  ///
  /// Before the sign-out itself begins, this call may wait until mutations are sent, as `policy` requires, and until an
  /// earlier sign-out has ended. Cancelling the calling task before or during these waits ends the call with
  /// ``SignOutError/cancelled``. If the process ends after the sign-out has begun, another process or the next launch
  /// completes it.
  ///
  /// Afterwards the store keeps only a digest of the user's id with the state of the sign-out and the counts of the
  /// user's sign-ins and sign-outs, and the random ids of the mutations that were most recently cancelled, discarded or
  /// replaced.
  ///
  /// A lock of the store keeps an erasure from deleting what is stored after a new sign-in. If the store doesn't
  /// support locks, or a database server loses the connection that holds the lock, a process that is slow to erase may
  /// delete such data. See `KeyValueStore.acquireLock(_:)`.
  ///
  /// - Parameters:
  ///   - userID: The id of the user; see ``RepositoryKey/userID``.
  ///   - policy: The treatment of the user's unsent mutations.
  /// - Throws: ``SignOutError``. After ``SignOutError/unsent(_:)`` and ``SignOutError/cancelled``, this call hasn't
  ///   signed the user out.
  /// - Complexity: O(*n*), where *n* is the number of names in the store. If the store is a database, the erasure
  ///   rewrites it. Unless unsent mutations are discarded, counting them may rewrite it too, because mutations that
  ///   can't be decoded are counted by an erasure that deletes nothing.
  public func signOut(userID: String, unsent policy: UnsentPolicy) async throws(SignOutError) {
    try await engine.signOut(userID: userID, unsent: policy)
  }
}

extension SyncedRepository {
  /// Suspends the repository, before the system suspends or ends the process.
  ///
  /// A suspended repository sends nothing, fetches nothing on its own, and holds no lock. Some systems end a process
  /// that is suspended while it holds a lock of a file that others share. Calls still work: ``perform(_:on:)`` stores
  /// the mutation and returns ``MutationResult/queued``, and ``reload(_:)`` fetches.
  ///
  /// The call waits at most 2 seconds for mutations in flight. Then it cancels the attempts, and stores that their
  /// outcomes are unknown, so that they are sent again under their ids. Calls that wait for the server return
  /// ``MutationResult/queued``. If all repositories of this process on the store are suspended, the store is too, which
  /// waits for its calls in progress; see `KeyValueStore.suspend()`.
  ///
  /// A repository is also suspended while its ``ActivityMonitor`` reports ``AppActivity/background``. It runs again
  /// when both conditions have ended. Several calls count as one. A call of ``resume()`` in the meantime ends this one
  /// early. Cancelling the calling task has no effect.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of queued mutations.
  public func suspend() async {
    await engine.runToCompletion { engine in await engine.suspend() }
  }

  /// Ends ``suspend()``, unless the app is in the background.
  ///
  /// The repository then notices what other processes have stored, and sends what is queued.
  public func resume() async {
    await engine.runToCompletion { engine in await engine.resume() }
  }

  /// Sends the queued mutations, for example while the system lets the app work in the background.
  ///
  /// ```swift
  /// let result = await comments.drain(within: .seconds(20))
  /// ```
  ///
  /// The call ends when no mutation is left, when none can be sent before the time is over, or when the time is over.
  /// It doesn't shorten delays after failed attempts. If the repository is suspended, it runs during the call, fetches
  /// nothing on its own, and is suspended again before the call returns. That may take 2.5 seconds longer, and the time
  /// that the store needs. A call of ``suspend()`` ends this one, and so does cancelling the calling task.
  ///
  /// - Parameter duration: The time.
  /// - Returns: Whether mutations are left, and why.
  public func drain(within duration: Duration) async -> DrainResult {
    await engine.drain(within: duration)
  }
}

extension SyncedRepository {
  /// The values of all keys: first the newest one that the repository has read, then every later value of any key.
  ///
  /// If that value isn't known, an observer receives all stored values instead, the newest one last. It isn't known
  /// before the repository has read any, and after its removal or eviction.
  ///
  /// - Complexity: Opens every stored key if the newest value isn't known.
  public var everyValue: ObservedValues<Value> {
    ObservedValues { [weak engine] in
      guard let engine else { return finishedStream() }
      return engine.channels.everyValue.stream(of: engine.name) {
        engine.tasks.start { [weak engine] in await engine?.observeEveryValue() }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObservingEveryValue() }
      }
    }
  }

  /// The pending mutations of a key, in the order in which they are applied: the current list first, then the newest
  /// list after each change.
  public func pendingMutations(of key: Key) -> ObservedValues<[Source.Mutation]> {
    ObservedValues { [weak engine] in
      guard let engine else { return finishedStream() }
      return engine.channels.pendings.stream(of: key) {
        engine.tasks.start { [weak engine] in await engine?.observe(key) }
      } onClose: { [weak engine] in
        engine?.tasks.start { [weak engine] in await engine?.endObserving(key) }
      }
    }
  }

  /// Sends the waiting mutations as ``retryNow()`` does, including those that wait for a user to sign in.
  ///
  /// If the user's credentials have changed, call ``credentialsChanged(userID:)`` instead, which also notifies the
  /// other repositories on the store.
  public func resumeAll() async {
    await engine.resumeAll()
  }
}

extension SyncedRepository where Source: PagedSource {
  /// Brings every loaded page up to date: fetches as many elements as are loaded, page by page, and replaces the stored
  /// ones at once.
  ///
  /// Afterwards the list shows no element that the server had deleted when the call began, and every change of an
  /// element that is still among the first ones. If the first stored element isn't the newest one, the list stays in
  /// place. Concurrent calls share the requests. If a request fails, the stored pages stay as they are.
  ///
  /// - Throws: The errors of ``refresh(_:)``.
  /// - Complexity: One request for each loaded page, one after the other, and one more if the last element was deleted
  ///   or pushed further down; a single request if the source ``PagedSource/fetchesCompleteLists``. ``reload(_:)``
  ///   usually makes a single request.
  public func reloadLoadedPages(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key, .whole)
  }

  /// Brings every loaded page up to date as ``reloadLoadedPages(_:)`` does, unless the stored value is fresh.
  ///
  /// - Throws: The errors of ``refresh(_:)``.
  /// - Complexity: That of ``reloadLoadedPages(_:)``.
  public func refreshLoadedPages(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.refresh(key, .whole)
  }

  /// Fetches the page after the last stored element, and appends it without duplicates.
  ///
  /// If there is no next page, nothing is fetched. If nothing is stored, the newest page is fetched. After a failure,
  /// the next call requests the same page. If the server permanently refuses to return the page, the next fetch of the
  /// newest page replaces all stored pages, and later calls continue after it. Call ``reload(_:)`` to replace them
  /// immediately.
  ///
  /// - Throws: The errors of ``refresh(_:)``. A failed fetch doesn't change the stored value.
  public func loadMore(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key, .nextPage)
  }
}

extension SyncedRepository where Source: BidirectionalPagedSource {
  /// Fetches the page before the first stored element, and prepends it without duplicates.
  ///
  /// If there is no previous page, nothing is fetched. If nothing is stored, the newest page is fetched. After a
  /// failure, the next call requests the same page.
  ///
  /// - Throws: The errors of ``refresh(_:)``. A failed fetch doesn't change the stored value.
  public func loadPrevious(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key, .previousPage)
  }

  /// Fetches the newest page, regardless of where the stored elements begin.
  ///
  /// The page is joined to the stored elements if the result is certainly a contiguous part of the server's list.
  /// Otherwise the page replaces them.
  ///
  /// - Throws: The errors of ``refresh(_:)``. A failed fetch doesn't change the stored value.
  public func loadNewest(_ key: Key) async throws(RepositoryError<Failure>) {
    try await engine.load(key, .newestPage)
  }
}

extension SyncedRepository where Source: MutableSource {
  /// Applies a mutation immediately, makes it durable, and sends it, or lets the repository that leads send it.
  ///
  /// Cancelling the calling task ends the call, but doesn't cancel the mutation.
  ///
  /// - Returns: ``MutationResult/confirmed`` when the stored value includes the mutation, ``MutationResult/queued`` as
  ///   soon as the mutation has to wait for more than its turn, or ``MutationResult/conflicted(_:)`` if it isn't
  ///   possible on the server's value or on a newer stored one.
  /// - Throws: ``RepositoryError/conflict(_:)`` if the mutation isn't possible on the current value;
  ///   ``RepositoryError/queueFull``; ``RepositoryError/store(_:)`` if the mutation, or the value that results from it,
  ///   can't be stored, the stored value can't be read, or the stored mutation became corrupt, so that it is rolled
  ///   back although the server may have it; ``RepositoryError/server(_:)`` if the mutation was rolled back, because
  ///   the server refused it or the ``RetryPolicy`` allows no further attempt; ``RepositoryError/signedOut`` if the
  ///   user has signed out or is signing out; ``RepositoryError/cancelled`` if the calling task was cancelled, or the
  ///   mutation was cancelled with ``PendingMutations/cancel(_:)``, in this or another process.
  /// - Complexity: The cost of `apply(to:)`, plus O(1) for each observer of the key.
  @discardableResult
  public func perform(
    _ mutation: Source.Mutation, on key: Key
  ) async throws(RepositoryError<Failure>) -> MutationResult {
    try await engine.perform(mutation, on: key)
  }

  /// The mutations that the server doesn't have yet, or whose resulting value isn't stored yet.
  public var mutations: PendingMutations<Source> { PendingMutations(engine) }

  /// Waits until no mutation is waiting or in flight.
  ///
  /// A mutation whose user has to sign in counts as waiting. Mutations that were refused or are in conflict don't
  /// count, and neither do those that another independent repository sends; see ``LeadershipStatus/independent``.
  ///
  /// - Throws: `CancellationError` if the calling task is cancelled or the repository is released before that.
  public func waitForPendingMutations() async throws(CancellationError) {
    await engine.startInBackground()
    for await count in engine.liveCounts.stream where count == 0 { return }
    throw CancellationError()
  }
}

extension SyncedRepository {
  /// Creates a read-only repository from a closure.
  ///
  /// ```swift
  /// let profiles = SyncedRepository("profile", store: store) { (userID: String) async throws(ClientError) in
  ///   try await client.profile(of: userID)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: The store's collection for the values.
  ///   - store: The store that keeps the values.
  ///   - configuration: The settings of the repository.
  ///   - fetch: A closure that fetches the value of a key.
  public convenience init<Key, Value, Failure>(
    _ name: String, store: any KeyValueStore, configuration: RepositoryConfiguration = .init(),
    fetch: @escaping @Sendable (Key) async throws(Failure) -> Value
  ) where Source == FetchSource<Key, Value, Failure> {
    self.init(FetchSource(name, fetch: fetch), store: store, configuration: configuration)
  }
}
