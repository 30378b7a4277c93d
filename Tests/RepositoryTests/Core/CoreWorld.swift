import DataStore
import Foundation
import RepositoryTesting

@testable import Repository

/// Two ``SyncCore``s of two processes on one store, and a server, all of them values.
///
/// ``possibleEvents`` has the events that can occur next, and ``apply(_:)`` makes one occur. The *laws* must hold after
/// each event, and ``violation`` describes a broken one. The world does what the engine does, in smaller steps: each
/// commit and each part of a request is an event.
struct CoreWorld {
  typealias Core = SyncCore<NotesSource>
  typealias Operation = Effects<NotesSource>.Operation

  enum Event: Hashable, Sendable {
    case perform(Int, key: String)
    /// The process applies the next transaction of the store.
    case observe(Int)
    /// The process begins or continues the operation at an index.
    case work(Int, Int)
    case reload(Int, key: String)
    /// The server receives the request at an index, and answers.
    case serve(Int)
    /// The answer to the request at an index reaches its process.
    case reply(Int, withValue: Bool)
    /// The request at an index ends without an answer.
    case lose(Int)
    /// Another client changes a value on the server.
    case edit(key: String)
    /// The process ends, and begins again with what is stored.
    case relaunch(Int)
    /// Enough time passes for everything that waits.
    case wait
  }

  /// How often the events that add work may occur.
  struct Limits {
    var performs = 2
    var reloads = 1
    var edits = 1
    var relaunches = 1
    var waits = 3
  }

  private struct Row {
    let stored: any AnyStoredValue
    let change: StoreFeedChange
  }

  private struct Transaction {
    let process: Int
    let changes: [StoreFeedChange]
    let revision: UInt64
    let tag: StoreTag
  }

  private enum Work {
    case operation(Operation)
    /// The commit of a new mutation.
    case addition(MutationID)
    /// The commit of a write of replies.
    case commit(Core.Write, StoreBatch, KeyID<String>)
  }

  private struct Process {
    var core: Core
    /// The number of transactions that it has applied.
    var applied = 0
    var work: [Work] = []
    var own: [StoreTag: Set<MutationID>] = [:]
    /// What an observer of each key has seen last.
    var seen: [String: Notes] = [:]
    var isWaitingToLead = false
    /// The number of relaunches, so that the requests of earlier launches get no answer.
    var launch = 0
  }

  private enum Purpose {
    case send(Core.Entry, attempt: UInt64)
    /// `isForMutations` if confirmed mutations wait for the whole value.
    case fetch(isForMutations: Bool)
  }

  private struct Request {
    let process: Int
    let launch: Int
    let key: KeyID<String>
    let requestedAt: Core.Timestamp
    let purpose: Purpose
    /// The value of the server when it has received the request.
    var answer: Notes?
  }

  /// A mutation that was made.
  private struct Intent {
    let id: MutationID
    let key: String
    let text: String
    let process: Int
    let launch: Int
    /// Whether its record was stored.
    var sequence: UInt64?
  }

  static let keys = ["a", "b"]

  private var processes: [Process] = []
  private var rows: [StoreKeyName: Row] = [:]
  private var transactions: [Transaction] = []
  private var requests: [Request] = []
  private var leader: Int?
  private var intents: [Intent] = []
  private var server: [String: Notes] = [:]
  /// The ids of the mutations that the server has applied, in order.
  private var served: [String: [MutationID]] = [:]
  private var fetches: [Int: [Int: Request]] = [:]
  private var now = Moment(time: Date(timeIntervalSince1970: 0), elapsed: .zero)
  private var limits: Limits
  private var lastText = 0
  /// A broken law, if any.
  private(set) var violation: String?

  init(_ limits: Limits = Limits()) {
    self.limits = limits
    processes = (0..<2).map { _ in Process(core: Self.makeCore()) }
    for key in Self.keys {
      let stored = StoredValue(value: Notes(), savedAt: now.time, revision: 0, tag: StoreTag())
      let name = StoreKey<Notes>.notes(key).keyName
      rows[name] = Row(stored: stored, change: .saved(name, stored))
    }
    for process in 0..<2 { launch(process) }
  }

  private static func makeCore() -> Core {
    let source = NotesSource(
      fetch: { (_) in Notes() }, send: { (_, _, _) throws(NotesFailure) in throw .offline })
    return Core(source, RepositoryConfiguration()) { _ in true }
  }

  // MARK: - Events

  var possibleEvents: [Event] {
    var events: [Event] = []
    for process in 0..<2 {
      if processes[process].applied < transactions.count { events.append(.observe(process)) }
      events += workIndices(of: process).map { .work(process, $0) }
      if limits.performs > 0 { events += Self.keys.map { .perform(process, key: $0) } }
      if limits.reloads > 0 { events += Self.keys.map { .reload(process, key: $0) } }
      if limits.relaunches > 0, limits.performs == 0 { events.append(.relaunch(process)) }
    }
    for (index, request) in requests.enumerated() {
      if request.answer == nil { events.append(.serve(index)) }
      if request.answer != nil { events.append(.reply(index, withValue: true)) }
      if request.answer != nil, case .send = request.purpose { events.append(.reply(index, withValue: false)) }
      if limits.waits > 0 { events.append(.lose(index)) }
    }
    if limits.edits > 0 { events += Self.keys.map { .edit(key: $0) } }
    if limits.waits > 0 { events.append(.wait) }
    return events
  }

  /// The indices of the operations that can go on.
  ///
  /// Mutations are stored in the order in which they were made.
  private func workIndices(of process: Int) -> [Int] {
    let isAddition = { (work: Work) in if case .addition = work { true } else { false } }
    let first = processes[process].work.firstIndex(where: isAddition)
    return processes[process].work.indices.filter { $0 == first || !isAddition(processes[process].work[$0]) }
  }

  /// The events that complete what has begun, and add nothing.
  var completingEvents: [Event] {
    possibleEvents.filter { event in
      switch event {
      case .observe, .work, .serve, .reply(_, withValue: true): true
      case .perform, .reload, .reply, .lose, .edit, .relaunch, .wait: false
      }
    }
  }

  mutating func apply(_ event: Event) {
    switch event {
    case .perform(let process, let key): perform(process, key)
    case .observe(let process): observe(process)
    case .work(let process, let index): work(process, index)
    case .reload(let process, let key):
      limits.reloads -= 1
      if let id = processes[process].core.keys[key]?.id { fetch(process, id, isForMutations: false) }
    case .serve(let index): serve(index)
    case .reply(let index, let withValue): reply(index, withValue: withValue)
    case .lose(let index): lose(index)
    case .edit(let key):
      limits.edits -= 1
      lastText += 1
      server[key, default: Notes()].texts.append("edit \(lastText)")
    case .relaunch(let process):
      limits.relaunches -= 1
      relaunch(process)
    case .wait:
      limits.waits -= 1
      pass(.seconds(3_600))
    }
    checkLaws()
  }

  /// Lets time pass, and does what is due.
  mutating func pass(_ duration: Duration) {
    now = Moment(time: now.time + 3_600, elapsed: now.elapsed + duration)
    for process in 0..<2 {
      update(process) { $0.ring() }
      if processes[process].isWaitingToLead { processes[process].work.append(.operation(.campaign)) }
      processes[process].isWaitingToLead = false
    }
  }

  // MARK: - Engine

  private mutating func update<Result>(_ process: Int, _ input: (inout Core) -> Result) -> Result {
    processes[process].core.now = now
    let result = input(&processes[process].core)
    let effects = processes[process].core.settle()
    for id in effects.published { publish(id.key, process) }
    for end in effects.ends {
      guard case .fetch(let number, let outcome) = end, let request = fetches[process]?[number],
        case .fetch(let isForMutations) = request.purpose
      else { continue }
      let isAccepted = if case .success(true) = outcome { true } else { false }
      if isForMutations {
        fetchWhole(process, request.key)
      } else if !isAccepted {
        // A reply that isn't accepted is fetched again.
        fetch(process, request.key, isForMutations: false)
      }
    }
    processes[process].work += effects.operations.compactMap { operation in
      if case .endFollowing = operation { nil } else { .operation(operation) }
    }
    return result
  }

  private mutating func publish(_ key: String, _ process: Int) {
    guard let visible = processes[process].core.keys[key]?.state.visible else { return }
    let missing = processes[process].seen[key]?.texts.filter { !visible.texts.contains($0) } ?? []
    if !missing.isEmpty { violation = "process \(process) no longer shows \(missing) of \(key): \(visible.texts)" }
    processes[process].seen[key] = visible
  }

  private mutating func launch(_ process: Int) {
    processes[process].applied = transactions.count
    let names = Core.recordKeys(of: processes[process].core)
    var changes: [StoreFeedChange] = []
    for (name, row) in rows where name.collection == names.collection { changes.append(row.change) }
    let changesOfRecords = changes
    let shared = [names.withdrawals.keyName, names.counter.keyName].map { name in
      (name, rows[name].map { [$0.change] } ?? [])
    }
    processes[process].core.queue.begin(as: .following)
    update(process) { core in
      for (name, changes) in shared { core.begin(.key(name), changes) }
      core.begin(.collection(names.collection), changesOfRecords)
    }
    for key in Self.keys {
      let storeKey = StoreKey<Notes>.notes(key)
      let stored = rows[storeKey.keyName].map { [$0.change] } ?? []
      update(process) { core in
        _ = core.keys.add(key, storeKey, core.capabilities)
        core.begin(.key(storeKey.keyName), stored)
      }
    }
  }

  private mutating func relaunch(_ process: Int) {
    if leader == process { leader = nil }
    let launch = processes[process].launch + 1
    processes[process] = Process(core: Self.makeCore(), launch: launch)
    self.launch(process)
  }

  private mutating func perform(_ process: Int, _ key: String) {
    limits.performs -= 1
    lastText += 1
    let (id, text) = (MutationID(rawValue: "\(lastText)"), "\(lastText)")
    guard let keyID = processes[process].core.keys[key]?.id else { return }
    intents.append(Intent(id: id, key: key, text: text, process: process, launch: processes[process].launch))
    let isAdded = update(process) { core in
      do {
        try core.add(.add(text), as: id, on: keyID, replacing: nil, hasCaller: true)
        return true
      } catch {
        return false
      }
    }
    if !isAdded { violation = "\(text) could not be added" }
    processes[process].work.append(.addition(id))
  }

  private mutating func observe(_ process: Int) {
    let transaction = transactions[processes[process].applied]
    processes[process].applied += 1
    let own = processes[process].own
    let isOwn = transaction.process == process && own[transaction.tag] != nil
    let shown = StoreTransaction(
      changes: transaction.changes, revision: transaction.revision, ownTag: isOwn ? transaction.tag : nil)
    update(process) { core in _ = core.apply(shown, isBeginning: { _ in false }, own: { own[$0] }) }
  }

  private mutating func observeAll(_ process: Int) {
    while processes[process].applied < transactions.count { observe(process) }
  }

  // MARK: - Store

  /// Makes a commit, and returns the key whose precondition has failed, if one has.
  private mutating func commit(
    _ batch: StoreBatch, by process: Int, adding added: Set<MutationID> = []
  ) -> StoreKeyName? {
    for entry in batch.entries where !isMet(entry) { return entry.keyName }
    let revision = UInt64(transactions.count + 1)
    var changes: [StoreFeedChange] = []
    for entry in batch.entries { save(entry, revision, batch.tag, &changes) }
    processes[process].own[batch.tag] = added
    transactions.append(Transaction(process: process, changes: changes, revision: revision, tag: batch.tag))
    // The call returns when the process has applied the commit, and before it everything that precedes it.
    observeAll(process)
    processes[process].own[batch.tag] = nil
    return nil
  }

  private func isMet(_ entry: some AnyStoreBatchEntry) -> Bool {
    let row = rows[entry.keyName]
    return entry.typed.requirements.allSatisfy { $0.isMet(by: row?.stored.tag, isUsable: row != nil) }
  }

  private mutating func save<Entry: AnyStoreBatchEntry>(
    _ entry: Entry, _ revision: UInt64, _ tag: StoreTag, _ changes: inout [StoreFeedChange]
  ) {
    switch entry.typed.change {
    case .save(let value):
      let stored = StoredValue(value: value, savedAt: now.time, revision: revision, tag: tag)
      let change = StoreFeedChange.saved(entry.keyName, stored)
      rows[entry.keyName] = Row(stored: stored, change: change)
      changes.append(change)
      if let record = value as? MutationRecord { recordSequence(of: record, entry.keyName) }
    case .remove:
      guard rows.removeValue(forKey: entry.keyName) != nil else { return }
      changes.append(.removed(entry.keyName, revision: revision))
    case nil: break
    }
  }

  private mutating func recordSequence(of record: MutationRecord, _ name: StoreKeyName) {
    guard let index = intents.firstIndex(where: { $0.id.rawValue == name.id }) else { return }
    if let sequence = intents[index].sequence, sequence != record.sequence {
      violation = "the mutation \(intents[index].id) got a second place in the order"
    }
    intents[index].sequence = record.sequence
  }

  /// Makes writes of records until their preconditions hold.
  private mutating func write(_ writes: [RecordWrite], by process: Int) {
    while true {
      processes[process].core.now = now
      let commit = processes[process].core.makeCommit(of: writes)
      guard commit.fates.contains(.included) else { return }
      guard self.commit(commit.batch, by: process, adding: commit.added) != nil else { return }
      observeAll(process)
    }
  }

  // MARK: - Work

  private mutating func work(_ process: Int, _ index: Int) {
    switch processes[process].work.remove(at: index) {
    case .commit(let write, let batch, let id): finish(write, batch, id, process)
    case .operation(let operation): perform(operation, process)
    case .addition(let id):
      write([RecordWrite(id: id, change: .add(replacing: nil))], by: process)
      update(process) { $0.endAddition(of: id) }
    }
  }

  private mutating func perform(_ operation: Operation, _ process: Int) {
    switch operation {
    case .save(let id), .saveToCompletion(let id), .saveConflict(let id), .awaitSignIn(let id):
      processes[process].core.queue.recordNeedForSave(of: id)
      write([RecordWrite(id: id, change: .save)], by: process)
    case .send(let entry, let number): send(entry, number, process)
    case .write(let id): beginWriting(id, process)
    case .campaign: campaign(process)
    case .rest: rest(process)
    case .readPredecessors(let id, let sequence):
      observeAll(process)
      update(process) { core in
        core.queue.recordReading(upTo: sequence)
        core.queue.recordPredecessors(of: id)
      }
    case .fetchWhole(let id): fetchWhole(process, id)
    case .checkRecord, .fetchObserved, .fetchAfterSending, .makeRoom, .endFollowing, .finishSignOut, .reopen: break
    }
  }

  private mutating func send(_ entry: Core.Entry, _ number: UInt64, _ process: Int) {
    let id = entry.id
    guard let keyID = processes[process].core.keys[entry.key]?.id else { return }
    if leader == process {
      let marked = processes[process].core.queue.mark(id)
      write(marked.map { RecordWrite(id: $0, change: .mark) }, by: process)
    }
    let began = update(process) { [leader] core -> (entry: Core.Entry, requestedAt: Core.Timestamp)? in
      guard leader == process else {
        core.abandonAttemptAfterLoss(entry)
        core.endAttempt(number, entry)
        return nil
      }
      if core.queue.needsMark(id) {
        core.abandonAttempt(entry, reason: "another process has changed the mutation's record")
        core.endAttempt(number, entry)
        return nil
      }
      guard let began = core.beginRequest(of: id, keyID) else {
        core.skip(entry, keyID)
        core.endAttempt(number, entry)
        return nil
      }
      return began
    }
    guard let began else { return }
    requests.append(
      Request(
        process: process, launch: processes[process].launch, key: keyID, requestedAt: began.requestedAt,
        purpose: .send(began.entry, attempt: number)))
  }

  /// Fetches the whole value, as long as confirmed mutations wait for it.
  private mutating func fetchWhole(_ process: Int, _ id: KeyID<String>) {
    if processes[process].core.needsWholeValue(id) {
      fetch(process, id, isForMutations: true)
    } else {
      update(process) { $0.endFetchOfWhole(id) }
    }
  }

  private mutating func fetch(_ process: Int, _ id: KeyID<String>, isForMutations: Bool) {
    guard let requestedAt = processes[process].core.keys[id]?.state.beginFetching() else { return }
    requests.append(
      Request(
        process: process, launch: processes[process].launch, key: id, requestedAt: requestedAt,
        purpose: .fetch(isForMutations: isForMutations)))
  }

  private mutating func serve(_ index: Int) {
    let key = requests[index].key.key
    if case .send(let entry, _) = requests[index].purpose, case .add(let text) = entry.mutation,
      !(served[key]?.contains(entry.id) ?? false)
    {
      served[key, default: []].append(entry.id)
      server[key, default: Notes()].texts.append(text)
    }
    requests[index].answer = server[key] ?? Notes()
  }

  private mutating func reply(_ index: Int, withValue: Bool) {
    let request = requests.remove(at: index)
    guard let answer = request.answer, processes[request.process].launch == request.launch else { return }
    switch request.purpose {
    case .send(let entry, let number):
      update(request.process) { core in
        core.receive(withValue ? .value(answer) : .done, to: entry, request.key, requestedAt: request.requestedAt)
        core.endAttempt(number, entry)
      }
    case .fetch:
      let number = update(request.process) { core -> Int in
        core.keys[request.key]?.state.endFetching(request.requestedAt)
        return core.judge(
          { .fetched(number: $0, .whole, merge: { _, _, _ in answer }) }, requestedAt: request.requestedAt, request.key)
      }
      fetches[request.process, default: [:]][number] = request
    }
  }

  private mutating func lose(_ index: Int) {
    let request = requests.remove(at: index)
    guard processes[request.process].launch == request.launch else { return }
    switch request.purpose {
    case .send(let entry, let number):
      update(request.process) { core in
        _ = core.receive(.unknownOutcome, reason: "lost", of: entry, request.key)
        core.endAttempt(number, entry)
      }
    case .fetch(let isForMutations):
      processes[request.process].core.keys[request.key]?.state.endFetching(request.requestedAt)
      if isForMutations { fetchWhole(request.process, request.key) }
    }
  }

  private mutating func beginWriting(_ id: KeyID<String>, _ process: Int) {
    guard let write = processes[process].core.beginWriting(id) else { return update(process) { $0.endWriting(id) } }
    schedule(write, id, process)
  }

  private mutating func schedule(_ write: Core.Write, _ id: KeyID<String>, _ process: Int) {
    if write.isEmpty {
      let commit = StoreCommit(revision: 0, tag: StoreTag(), savedAt: now.time)
      update(process) { $0.apply(write, commit, id) }
      end(write, id, process)
    } else if let batch = processes[process].core.makeCommit(of: write, id) {
      processes[process].work.append(.commit(write, batch, id))
    }
  }

  private mutating func finish(_ write: Core.Write, _ batch: StoreBatch, _ id: KeyID<String>, _ process: Int) {
    guard commit(batch, by: process) != nil else { return end(write, id, process) }
    processes[process].core.writes[batch.tag] = nil
    observeAll(process)
    update(process) { $0.judgeAgain(id) }
    beginWriting(id, process)
  }

  private mutating func end(_ write: Core.Write, _ id: KeyID<String>, _ process: Int) {
    if let next = update(process, { $0.endWrite(write, id) }) { schedule(next, id, process) }
  }

  // MARK: - Leading

  private mutating func campaign(_ process: Int) {
    guard processes[process].core.queue.needsLeader(at: now.elapsed) else {
      return update(process) { $0.lead.isCampaigning = false }
    }
    let isFree = leader == nil
    if isFree { leader = process }
    update(process) { $0.endTryingToLead(isFree ? .leading : .following) }
    guard isFree else {
      // The next attempt follows after a while.
      processes[process].isWaitingToLead = true
      return
    }
    observeAll(process)
    update(process) { core in
      core.beginSending(as: .leading)
      core.lead.isCampaigning = false
    }
  }

  private mutating func rest(_ process: Int) {
    let lease = processes[process].core.lead.leaseCount
    let mayRest = update(process) { $0.mayRest(lease, yields: false) }
    if mayRest, leader == process {
      for id in processes[process].core.queue.waitingWithMarks where processes[process].core.queue.removeMark(of: id) {
        perform(.save(id), process)
      }
      leader = nil
      update(process) { $0.releaseLead(yields: false) }
    }
    update(process) { $0.lead.isResting = false }
  }

  // MARK: - Laws

  private mutating func checkLaws() {
    guard violation == nil else { return }
    for intent in intents {
      let stored = (rows[StoreKeyName("notes", id: intent.key)]?.stored as? StoredValue<Notes>)?.value ?? Notes()
      let isStored = stored.texts.contains(intent.text)
      let hasRecord = rows[MutationKeys(repository: "notes").record(intent.id).keyName] != nil
      // A record is removed in the commit that stores a value with the change.
      if intent.sequence != nil, !hasRecord, !isStored { violation = "\(intent.text) is lost" }
      let process = processes[intent.process]
      guard process.launch == intent.launch, process.core.keys[intent.key]?.isOpen ?? false else { continue }
      if !(process.seen[intent.key]?.texts.contains(intent.text) ?? false) {
        violation = "\(intent.text) isn't visible in the process that made it"
      }
    }
    checkOrder()
  }

  /// The server has made the changes of each key in the order of their sequence numbers.
  private mutating func checkOrder() {
    for (key, ids) in served {
      let sequences = ids.compactMap { id in intents.first { $0.id == id }?.sequence }
      if sequences != sequences.sorted() { violation = "the server received the mutations of \(key) out of order" }
    }
  }

  /// What must hold when everything is complete.
  mutating func checkCompletion() {
    guard violation == nil else { return }
    for intent in intents where intent.sequence != nil {
      let count = server[intent.key]?.texts.count { $0 == intent.text } ?? 0
      if count != 1 { violation = "the server has made the change \(intent.text) \(count) times" }
    }
    for process in 0..<2 {
      if !processes[process].core.queue.live.isEmpty {
        violation = "process \(process) still has \(processes[process].core.queue.live.map(\.id))"
        return
      }
      for key in Self.keys {
        let stored = (rows[StoreKeyName("notes", id: key)]?.stored as? StoredValue<Notes>)?.value
        if let stored, processes[process].seen[key] != stored {
          violation = "process \(process) shows \(String(describing: processes[process].seen[key])), not \(stored)"
        }
      }
    }
  }
}

extension SyncCore {
  fileprivate static func recordKeys(of core: SyncCore) -> MutationKeys { core.recordKeys }
}
