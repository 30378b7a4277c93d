internal import DataStore
internal import Foundation

/// A stored mutation that this program can't read, although its bytes are as a program has written them.
///
/// Another version of the program has made or changed it, or has its key. It stays in the store as it is until a
/// program that can read it sends it, or the app discards it. This program shows it in no value, and sends no mutation
/// that comes after it in its lane.
struct HeldMutation<Key: RepositoryKey> {
  let id: MutationID
  /// The key, if this program knows it.
  let key: Key?
  let record: MutationRecord
  let tag: StoreTag
  let revision: UInt64
  let reason: UnreadableReason

  /// The digest of the user; `nil` if it isn't known.
  var user: UserDigest? { key.map { UserDigest($0.userID) } ?? record.user.map { UserDigest(text: $0) } }

  /// The lane; `nil` if it isn't known, so the mutation may have to be sent before any other one.
  var lane: LaneID? {
    guard let orderingKey = record.lane ?? key?.storeID else { return nil }
    return key.map { LaneID(userID: $0.userID, orderingKey: orderingKey) }
      ?? user.map { LaneID($0, orderingKey: orderingKey) }
  }
}

/// The held mutations of a repository.
///
/// A pure state machine.
///
/// - Complexity: O(1) for each function and property, except ``all``, which is O(*n* log *n*) for *n* mutations.
struct HeldMutations<Key: RepositoryKey> {
  private var mutations: [MutationID: HeldMutation<Key>] = [:]
  private var countsByKey: [Key: Int] = [:]
  private(set) var byteCount = 0
  /// The number of mutations whose lane isn't known.
  private(set) var countWithoutLane = 0

  var count: Int { mutations.count }

  subscript(id: MutationID) -> HeldMutation<Key>? { mutations[id] }

  /// All mutations, in order.
  var all: [HeldMutation<Key>] {
    mutations.values.sorted { ($0.record.sequence, $0.id.rawValue) < ($1.record.sequence, $1.id.rawValue) }
  }

  /// Whether a mutation of a key is held.
  func contains(mutationOf key: Key) -> Bool { countsByKey[key] != nil }

  /// Adds a mutation, or replaces it if it is held already.
  mutating func insert(_ mutation: HeldMutation<Key>) {
    remove(mutation.id)
    mutations[mutation.id] = mutation
    if let key = mutation.key { countsByKey[key, default: 0] += 1 }
    byteCount += mutation.record.byteCount
    if mutation.lane == nil { countWithoutLane += 1 }
  }

  @discardableResult
  mutating func remove(_ id: MutationID) -> HeldMutation<Key>? {
    guard let mutation = mutations.removeValue(forKey: id) else { return nil }
    if let key = mutation.key {
      countsByKey[key, default: 0] -= 1
      if countsByKey[key] == 0 { countsByKey[key] = nil }
    }
    byteCount -= mutation.record.byteCount
    if mutation.lane == nil { countWithoutLane -= 1 }
    return mutation
  }
}
