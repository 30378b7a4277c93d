public import DataStore
public import Foundation
public import Multicast

/// Mutations on their way to a server: kept in a store until the server has taken them, and sent in order.
///
/// Mutations with the same ordering key are sent one after another, in the order they were enqueued; those with
/// different keys at the same time, up to a limit. One that the network or the server could not take is sent again
/// after a wait that grows (``RetryPolicy``); one that the server refused is kept aside with the reason, as a dead
/// letter, and does not hold up the others.
///
/// - **Durability**: A mutation is in the store before ``enqueue(_:orderingKey:id:)`` returns, and leaves it after the
///   server has taken it. A process that ends in between, at any instant, sends it again after the relaunch.
/// - **Idempotency**: Each mutation has one ``MutationID``, made once, stored with it, and sent with every attempt,
///   also after a relaunch. By it the server knows a repetition: after a lost reply, or an end of the process between
///   the reply and the removal from the store, a mutation arrives twice, under the same key.
/// - **Sending**: Nothing is sent but by ``run()``, which a task of the owner's awaits. Cancelling that task stops the
///   queue, with the attempts under way; what is enqueued stays.
/// - **Storage**: Each mutation is a value of its own in the store, in the collection of the queue's name, with its own
///   id: so each is written and removed by itself, at a cost that does not depend on the length of the queue,
///   and one that cannot be decoded does not take the others with it: it is moved aside, and told by `events`.
///   One queue at a time may use a name in a store.
public actor MutationQueue<Mutation: Codable & Sendable, Reply: Sendable, Failure: Error> {
  /// Makes one attempt to send a mutation.
  ///
  /// What must have happened before the mutation leaves the store, such as saving the reply, belongs in here. An
  /// attempt that is cancelled answers ``MutationOutcome/retryLater(_:)``.
  public typealias Send =
    @Sendable (_ mutation: Mutation, _ idempotencyKey: String) async -> MutationOutcome<Reply, Failure>

  /// Tells what becomes of a mutation of this queue.
  public typealias Ticket = MutationTicket<Reply, Failure>

  typealias ProgressChannel = CurrentValueChannel<Ticket.Progress, Never>

  let store: any KeyValueStore
  let name: String
  let retryPolicy: RetryPolicy
  let timer: Timer
  let now: @Sendable () -> Date
  var random: AnyRandomNumberGenerator
  let events: RepositoryEvents
  let send: Send

  var state: MutationQueueState<Mutation>
  let snapshot: CurrentValueRelay<MutationQueueSnapshot<Mutation>>
  /// Counts the changes of the state, so that ``run()`` misses none.
  let changes = CurrentValueRelay<UInt64>(0)
  /// Those whose fate somebody may ask for.
  var progress: [MutationID: ProgressChannel] = [:]
  var reportedUnreadable: Set<StoreEvent> = []
  /// Passes on what the store tells, from before it is read, whether or not the queue runs.
  private var reporting: Task<Void, Never>?

  /// Creates a queue, which reads the store at the first call that needs it.
  ///
  /// - Parameters:
  ///   - store: Where the mutations are kept.
  ///   - name: Under which name in the store.
  ///   - retryPolicy: When to try again. The attempts of one process count; a relaunch begins anew.
  ///   - maximumConcurrentSends: How many mutations, of different ordering keys, are sent at the same time; at least 1.
  ///   - clock: Measures the waits.
  ///   - now: Tells the time, for what is shown and kept.
  ///   - random: Where the length of the waits comes from.
  ///   - events: Where the queue tells what happens.
  ///   - send: Makes one attempt to send a mutation.
  public init(
    store: any KeyValueStore,
    name: String,
    retryPolicy: RetryPolicy = RetryPolicy(),
    maximumConcurrentSends: Int = 4,
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() },
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    events: RepositoryEvents = RepositoryEvents(),
    send: @escaping Send
  ) {
    precondition(maximumConcurrentSends >= 1, "MutationQueue: 'maximumConcurrentSends' must be at least 1.")
    self.store = store
    self.name = name
    self.retryPolicy = retryPolicy
    timer = Timer(clock)
    self.now = now
    self.random = AnyRandomNumberGenerator(random)
    self.events = events
    self.send = send
    let state = MutationQueueState<Mutation>(maximumConcurrentSends: maximumConcurrentSends)
    self.state = state
    snapshot = CurrentValueRelay(state.snapshot)
  }

  deinit {
    reporting?.cancel()
  }

  // MARK: - Looking

  /// All that is in the queue: the present state for a new reader, then the newest after changes.
  public nonisolated var snapshots: MulticastStream<MutationQueueSnapshot<Mutation>, Never> { snapshot.stream }

  /// Reads what earlier processes left in the store; does nothing after it has.
  ///
  /// - Throws: `StoreError`. The next call tries again.
  public func load() async throws(StoreError) {
    if state.isLoaded { return }
    // What cannot be read is told by events, and the store remembers few of them.
    if reporting == nil {
      reporting = Task { [weak self, storeEvents = store.events.subscribe()] in
        for await event in storeEvents { await self?.report(event) }
      }
    }
    let found = try await store.observe(collection: name, as: StoredMutation<Mutation>.self).stored.map(\.stored.value)
    // Another call may have been faster, and what it read may have changed meanwhile.
    if state.isLoaded { return }
    state.load(found.sorted { $0.sequence < $1.sequence }.map { ($0.sequence, $0.entry) })
    stateHasChanged()
  }

  /// What is in the queue, earlier processes' mutations included, in the order it was enqueued.
  ///
  /// - Throws: `StoreError`, when the store has not been read yet and cannot be.
  public func entries() async throws(StoreError) -> [MutationEntry<Mutation>] {
    try await load()
    return state.snapshot.entries
  }

  /// The ticket of a mutation that will be sent, for example one of an earlier process; nil for any other.
  ///
  /// Those of earlier processes are known once the store has been read: see ``load()``.
  public func ticket(for id: MutationID) -> Ticket? {
    guard let entry = state.entry(id), !entry.isDead else { return nil }
    return makeTicket(id)
  }

  // MARK: - Changing

  /// Keeps a mutation in the store, to be sent.
  ///
  /// - Parameters:
  ///   - mutation: The mutation.
  ///   - orderingKey: What it is sent in order with.
  ///   - id: Its id, which is the idempotency key of all its attempts. Make one for each mutation.
  /// - Returns: Its ticket, when the mutation is durable.
  /// - Throws: ``MutationQueueError/store(_:)`` or ``MutationQueueError/alreadyQueued(_:)``; then it will not be sent.
  @discardableResult
  public func enqueue(
    _ mutation: Mutation, orderingKey: String, id: MutationID = MutationID()
  ) async throws(MutationQueueError) -> Ticket {
    do throws(StoreError) { try key(of: id).validate() } catch { throw .store(error) }
    try await loadForCall()
    let entry = MutationEntry(id: id, orderingKey: orderingKey, mutation: mutation, enqueuedAt: now())
    guard let sequence = state.reserve(entry) else { throw .alreadyQueued(id) }
    do throws(StoreError) {
      try await store.save(StoredMutation(entry, sequence: sequence), for: key(of: id))
    } catch {
      state.abandon(sequence)
      stateHasChanged()
      throw .store(error)
    }
    state.finishReserving(sequence)
    events.emit(.mutationEnqueued(id, orderingKey: orderingKey))
    // Taken before the queue is woken, so it is there to be told the fate.
    let ticket = makeTicket(id)
    stateHasChanged()
    return ticket
  }

  /// Takes back a mutation that is not on its way: when this returns, it is gone for good, and will not be sent.
  ///
  /// Where an attempt had begun before, the server may have made the change all the same.
  ///
  /// - Throws: ``MutationQueueError``, with ``MutationQueueError/alreadySending(_:)`` when it is too late.
  public func cancel(_ id: MutationID) async throws(MutationQueueError) {
    try await loadForCall()
    _ = try state.lockForCancelling(id)
    try await removeLocked(id)
    settle(id, as: .cancelled)
    events.emit(.mutationCancelled(id))
    stateHasChanged()
  }

  /// Sends a dead letter again, under its old key, behind all that is queued.
  ///
  /// - Returns: Its new ticket.
  /// - Throws: ``MutationQueueError``; then it stays a dead letter.
  @discardableResult
  public func requeue(_ id: MutationID) async throws(MutationQueueError) -> Ticket {
    try await loadForCall()
    let (sequence, entry) = try state.reserveAgain(id)
    do throws(StoreError) {
      try await store.save(StoredMutation(entry, sequence: sequence), for: key(of: id))
    } catch {
      state.abandonAgain(id, sequence)
      stateHasChanged()
      throw .store(error)
    }
    state.finishReservingAgain(id, as: sequence)
    events.emit(.mutationRequeued(id))
    let ticket = makeTicket(id)
    stateHasChanged()
    return ticket
  }

  /// Throws away a dead letter: when this returns, it is gone for good.
  ///
  /// - Throws: ``MutationQueueError``; then it stays.
  public func discard(_ id: MutationID) async throws(MutationQueueError) {
    try await loadForCall()
    _ = try state.lockDeadLetter(id)
    try await removeLocked(id)
    events.emit(.mutationDiscarded(id))
    stateHasChanged()
  }

  // MARK: - Sending

  /// Sends what is queued and what will be, until the calling task is cancelled.
  ///
  /// Returns when the attempts under way have ended.
  ///
  /// - Throws: `StoreError`, when the store cannot be read: nothing is sent then. Call again.
  public func run() async throws(StoreError) {
    try await load()
    await withDiscardingTaskGroup { group in
      while !Task.isCancelled {
        let change = changes.value
        switch state.next(at: timer.elapsed()) {
        case .send(let entry):
          stateHasChanged()
          group.addTask { await self.attempt(entry) }
        case .wait(let deadline):
          await waitForChange(after: change, until: deadline)
        }
      }
    }
  }

  /// Sends nothing more until ``resume()``; attempts under way go on.
  public func pause() {
    tellQueued(state.pause())
    stateHasChanged()
  }

  /// Lets a paused queue send again.
  ///
  /// Waits that are not over go on: to end them too, call ``retryNow()``.
  public func resume() {
    state.resume()
    stateHasChanged()
  }

  /// Ends all waits for a next attempt, and lets them begin from the shortest again: call it when the network is back.
  public func retryNow() {
    state.kick()
    stateHasChanged()
  }
}

extension MutationQueue {
  private func loadForCall() async throws(MutationQueueError) {
    do throws(StoreError) { try await load() } catch { throw .store(error) }
  }

  func key(of id: MutationID) -> StoreKey<StoredMutation<Mutation>> {
    StoreKey(name, id: id.rawValue)
  }

  /// Removes a locked entry from the store, and then from the queue.
  private func removeLocked(_ id: MutationID) async throws(MutationQueueError) {
    do throws(StoreError) {
      try await store.remove(key(of: id))
    } catch {
      state.unlock(id)
      stateHasChanged()
      throw .store(error)
    }
    state.removeLocked(id)
  }
}
