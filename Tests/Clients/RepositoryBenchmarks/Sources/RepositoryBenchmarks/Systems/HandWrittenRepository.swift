internal import DataStore
internal import Multicast
internal import Repository

/// A hand-written repository: an actor that shows a change, saves it with a queue entry in a store, and sends it.
///
/// The stored value includes the pending changes, so they are visible after a relaunch before the queue is read. This
/// repository guarantees less than a `SyncedRepository`: it has no rollback, conflict handling, backoff, or support for
/// several processes. It shows a fetched value even if that is older than the current one, and its memory use is
/// unbounded. A fetched value or a reply that is shown while a change is being saved hides the change, also in the
/// stored value; the benchmarks avoid this.
actor HandWrittenRepository<Mutation: RepositoryMutation>: RepositorySystem
where Mutation.Value: Codable & Equatable & Sendable {
  typealias Value = Mutation.Value

  private struct Entry: Codable, Sendable {
    let key: String
    let sequence: Int
    let mutation: Mutation
  }

  private static var queueCollection: String { "queue" }

  private let server: Server<Mutation>
  private let store: any KeyValueStore
  private var values: [String: Value] = [:]
  private var channels: [String: MulticastChannel<Value, Never>] = [:]
  /// The durable entries of each key, in order; `nil` until they are read.
  private var queues: [String: ArraySlice<Entry>]?
  /// The entries of each key that aren't durable yet.
  private var unsaved: [String: [Entry]] = [:]
  /// The saves that haven't begun yet, by key.
  private var nextSaves: [String: Task<Void, any Error>] = [:]
  /// The last commit of each key.
  private var lastCommits: [String: Task<Void, any Error>] = [:]
  /// The keys whose entries are being sent.
  private var keysInFlight: Set<String> = []
  private var lastSequence = 0

  init(_ server: Server<Mutation>, _ store: any KeyValueStore) {
    (self.server, self.store) = (server, store)
  }

  func values(of key: String) async throws -> MulticastStream<Value, Never> {
    try await loadValueIfNeeded(of: key)
    return channel(of: key).stream
  }

  func reload(_ key: String) async throws {
    try await readQueueIfNeeded()
    var value = try server.fetch(key)
    for entry in queues?[key] ?? [] { try entry.mutation.apply(to: &value) }
    show(value, of: key)
    try await enqueueCommit(of: key) { [value] in try await self.store.save(value, for: self.valueKey(key)) }.value
  }

  func perform(_ mutation: Mutation, on key: String) async throws -> Bool {
    try await loadValueIfNeeded(of: key)
    try await readQueueIfNeeded()
    // The benchmarks change only keys with a stored value, so this repository needn't queue changes of other keys.
    guard var value = values[key] else { return false }
    try mutation.apply(to: &value)
    show(value, of: key)
    lastSequence += 1
    let entry = Entry(key: key, sequence: lastSequence, mutation: mutation)
    unsaved[key, default: []].append(entry)
    // A save that hasn't begun yet includes the entry.
    let save = nextSaves[key] ?? enqueueCommit(of: key) { try await self.saveEntries(of: key) }
    nextSaves[key] = save
    try await save.value
    do {
      try await send(key)
    } catch is ServerUnreachable {
      return false
    }
    return !(queues?[key] ?? []).contains { $0.sequence == entry.sequence }
  }

  func deliverAll() async throws {
    try await readQueueIfNeeded()
    var keys = Array((queues ?? [:]).keys)
    try await withThrowingTaskGroup { group in
      // Entries of at most four keys are sent at a time.
      for _ in 0..<4 {
        if let key = keys.popLast() { group.addTask { try await self.send(key) } }
      }
      while try await group.next() != nil {
        if let key = keys.popLast() { group.addTask { try await self.send(key) } }
      }
    }
  }

  /// Sends the queued entries of a key one after the other, and shows the value of the last reply if replies have one.
  private func send(_ key: String) async throws {
    guard keysInFlight.insert(key).inserted else { return }
    defer { keysInFlight.remove(key) }
    while let entry = queues?[key]?.first {
      let reply = try server.make(entry.mutation, on: key)
      var batch = StoreBatch()
      batch.remove(entryKey(entry))
      // A reply includes all queued changes only if no later entry is queued.
      if server.replyKind == .value, queues?[key]?.count == 1 {
        show(reply, of: key)
        batch.save(reply, for: valueKey(key))
      }
      try await enqueueCommit(of: key) { [batch] in try await self.store.commit(batch) }.value
      queues?[key]?.removeFirst()
      if queues?[key]?.isEmpty ?? false { queues?[key] = nil }
    }
  }

  /// Saves all entries added since the last save in one commit, with the newest value.
  private func saveEntries(of key: String) async throws {
    nextSaves[key] = nil
    guard let entries = unsaved.removeValue(forKey: key), let value = values[key] else { return }
    var batch = StoreBatch()
    batch.save(value, for: valueKey(key))
    for entry in entries { batch.save(entry, for: entryKey(entry)) }
    try await store.commit(batch)
    queues?[key, default: []].append(contentsOf: entries)
  }

  /// Enqueues a commit behind the previous one of its key, because concurrent calls may reach a store in any order.
  private func enqueueCommit(
    of key: String, _ body: @escaping @Sendable () async throws -> Void
  ) -> Task<Void, any Error> {
    let task = Task { [previous = lastCommits[key]] in
      _ = await previous?.result
      try await body()
    }
    lastCommits[key] = task
    return task
  }

  private func loadValueIfNeeded(of key: String) async throws {
    guard values[key] == nil, let stored = try await store.load(valueKey(key)), values[key] == nil else { return }
    show(stored.value, of: key)
  }

  private func readQueueIfNeeded() async throws {
    guard queues == nil else { return }
    let stored = try await store.observe(collection: Self.queueCollection, as: Entry.self).stored.map(\.stored.value)
    guard queues == nil else { return }
    lastSequence = stored.map(\.sequence).max() ?? 0
    let ordered = stored.sorted { $0.sequence < $1.sequence }
    queues = Dictionary(grouping: ordered, by: \.key).mapValues { $0[...] }
  }

  private func show(_ value: Value, of key: String) {
    values[key] = value
    channel(of: key).send(value)
  }

  private func channel(of key: String) -> MulticastChannel<Value, Never> {
    if let channel = channels[key] { return channel }
    let channel = MulticastChannel<Value, Never>(replay: 1, buffering: .unbounded)
    channels[key] = channel
    return channel
  }

  private nonisolated func valueKey(_ key: String) -> StoreKey<Value> { StoreKey(server.collection, id: key) }

  private nonisolated func entryKey(_ entry: Entry) -> StoreKey<Entry> {
    StoreKey(Self.queueCollection, id: "\(entry.sequence)")
  }
}

extension HandWrittenRepository {
  static var label: String { SystemLabel.byHand }
}

/// The name of the system that the others are compared with.
enum SystemLabel {
  static let byHand = "by hand"
}
