internal import DataStore
internal import Foundation

/// All mutations of a repository that are not done with: what is stored of each, and where each stands.
///
/// A pure state machine. The order in which mutations are sent is that of ``MutationLanes``, and how they change values is
/// that of ``SyncState``.
///
/// - Complexity: O(1) for each function that names one mutation; O(*n*) for ``list`` and ``liveIDs(of:)``, where *n* is the
///   number of mutations, and of those of the key.
struct MutationLedger<Key: RepositoryKey, Mutation: Codable & Sendable> {
  typealias Record = MutationRecord<Mutation>
  typealias Standing = PendingMutation<Key, Mutation>.Standing

  struct Entry {
    let id: MutationID
    let key: Key
    let lane: String
    let byteCount: Int
    var record: Record
    /// The commit that wrote the record last; `nil` while it isn't durable.
    var tag: StoreTag?
    /// The revision of that commit; older changes of the record mean nothing.
    var revision: UInt64 = 0
    /// Whether it is durable that an attempt of this process may have begun.
    var isMarked = false
    var isInFlight = false
    /// Whether the server answered an attempt of this process with success.
    var isAnswered = false
    var needsSignIn = false
    /// Whether it is being cancelled, resolved or requeued.
    var isDeciding = false
    /// Whether another repository made it, which sends it.
    var isExternal = false

    var isLive: Bool { record.verdict == nil }
    var isOwnAndLive: Bool { isLive && !isExternal }

    var standing: Standing {
      switch record.verdict {
      case .conflicted(let conflict): .conflicted(conflict)
      case .refused(let reason): .refused(reason: reason)
      case nil where isInFlight || isAnswered || (isExternal && record.unfinishedAttempts > 0): .inFlight
      case nil: needsSignIn ? .needsSignIn : .waiting
      }
    }
  }

  private var entries: [MutationID: Entry] = [:]
  private var idsOfKeys: [Key: Set<MutationID>] = [:]
  private(set) var byteCount = 0
  /// The number of mutations that this repository will send, or sends.
  private(set) var liveCount = 0
  /// Counts changes of what ``list`` returns.
  private(set) var version: UInt64 = 0

  var count: Int { entries.count }

  subscript(id: MutationID) -> Entry? { entries[id] }

  /// The mutations of a key that will be sent, or are, in order.
  func liveIDs(of key: Key) -> [MutationID] {
    let ids = idsOfKeys[key]?.filter { entries[$0]?.isLive ?? false } ?? []
    return ids.sorted { entries[$0]!.record.sequence < entries[$1]!.record.sequence }
  }

  /// All mutations in order.
  var list: [PendingMutation<Key, Mutation>] {
    entries.values.sorted { $0.record.sequence < $1.record.sequence }.map {
      PendingMutation(
        id: $0.id, key: $0.key, mutation: $0.record.mutation, standing: $0.standing, attempts: $0.record.attempts,
        madeAt: $0.record.madeAt)
    }
  }

  /// The time of the oldest mutation that will be sent.
  var oldest: Date? { entries.values.lazy.filter(\.isLive).map(\.record.madeAt).min() }

  mutating func add(_ entry: Entry) {
    guard entries[entry.id] == nil else { return }
    entries[entry.id] = entry
    idsOfKeys[entry.key, default: []].insert(entry.id)
    byteCount += entry.byteCount
    if entry.isOwnAndLive { liveCount += 1 }
    version += 1
  }

  @discardableResult
  mutating func remove(_ id: MutationID) -> Entry? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    idsOfKeys[entry.key]?.remove(id)
    if idsOfKeys[entry.key]?.isEmpty ?? false { idsOfKeys[entry.key] = nil }
    byteCount -= entry.byteCount
    if entry.isOwnAndLive { liveCount -= 1 }
    version += 1
    return entry
  }

  /// Changes an entry, if it is there.
  mutating func edit(_ id: MutationID, _ body: (inout Entry) -> Void) {
    guard var entry = entries[id] else { return }
    let wasLive = entry.isOwnAndLive
    body(&entry)
    entries[id] = entry
    liveCount += (entry.isOwnAndLive ? 1 : 0) - (wasLive ? 1 : 0)
    version += 1
  }
}
