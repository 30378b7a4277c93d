public import DataStore
public import Foundation
internal import Multicast

/// The storage that several ``SimulatedStore``s share, as processes share the folder of a `FileStore`.
///
/// It keeps values without encoding them. All values of a collection must have the same type.
public final class SimulatedStorage: Sendable {
  /// A value that a commit wrote.
  struct Record: Sendable {
    let value: any Sendable
    let savedAt: Date
    let tag: StoreTag
    /// The number of the commit, and the index of the value in it.
    let order: (commit: Int, index: Int)
  }

  /// A commit's change of one key; the record is `nil` for a removal.
  struct Change: Sendable {
    let key: StoreKeyName
    let record: Record?
  }

  /// The requested change and the preconditions of one key, without the type of its value.
  struct Request: Sendable {
    enum Action: Sendable {
      case none, remove
      case save(any Sendable)
    }

    let key: StoreKeyName
    let requirements: [StoreRequirement]
    let action: Action
  }

  /// The result of a commit.
  struct Commit: Sendable {
    let tag: StoreTag
    let time: Date
    /// The number of earlier commits that changed a value.
    ///
    /// If this commit changed a value too, it is the number of this commit.
    let number: Int
    let changesSomething: Bool
  }

  private struct State {
    var records: [StoreKeyName: Record] = [:]
    /// The name of the type of each collection's values.
    var typeNames: [String: String] = [:]
    /// The changes of each commit that changed a value; the index is the number of the commit.
    var commits: [[Change]] = []
    /// The locked names, with the stores that locked them and the numbers of the locks.
    var locks: [String: (owner: ObjectIdentifier, number: UInt64)] = [:]
    var lastLockNumber: UInt64 = 0
  }

  private let state = Lock(State())
  private let lockReleases = MulticastRelay<Void>(buffering: .latest)
  private let now: @Sendable () -> Date

  /// Creates an empty storage.
  ///
  /// - Parameter now: Returns the time of a save.
  public init(now: @escaping @Sendable () -> Date = { Date() }) {
    self.now = now
  }

  /// Returns the stored value of a key directly from the storage, for a test of durability.
  public func value<Value>(of key: StoreKey<Value>) -> Value? {
    state.withLock { $0.records[key.keyName] }?.value as? Value
  }

  /// Returns the stored values of a collection by id, directly from the storage; traps if they are of another type.
  ///
  /// - Complexity: O(*n*), where *n* is the number of all stored values.
  public func values<Value>(in collection: String, as type: Value.Type) -> [String?: Value] {
    let records = state.withLock { $0.records.filter { $0.key.collection == collection } }
    return Dictionary(uniqueKeysWithValues: records.map { ($0.key.id, $0.value.value as! Value) })
  }

  /// A text for each stored value and its key, sorted, directly from the storage.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of all stored values.
  public var texts: [String] {
    allValues.map { "\($0.key): \($0.value)" }.sorted()
  }

  /// All stored values, by key.
  var allValues: [StoreKeyName: any Sendable] { state.withLock { $0.records.mapValues(\.value) } }

  /// The number of commits that changed a value.
  public var commitCount: Int { state.withLock { $0.commits.count } }

  /// Returns the changes of the commit with a number.
  func changes(ofCommit number: Int) -> [Change] { state.withLock { $0.commits[number] } }

  /// Returns the record of a key, and the number of commits so far.
  func read(_ key: StoreKeyName) -> (record: Record?, commitCount: Int) {
    state.withLock { ($0.records[key], $0.commits.count) }
  }

  /// Returns the records of a collection in the order of their saves, and the number of commits so far.
  func read(collection: String) -> (records: [(key: StoreKeyName, record: Record)], commitCount: Int) {
    let (records, count) = state.withLock { state in
      (state.records.filter { $0.key.collection == collection }, state.commits.count)
    }
    return (records.sorted { $0.value.order < $1.value.order }.map { ($0.key, $0.value) }, count)
  }

  /// Records the type of a collection's values at the first call, and throws if a later call has another type.
  func claim(_ collection: String, _ typeName: String) throws(StoreError) {
    let existing = state.withLock { state in
      if state.typeNames[collection] == nil { state.typeNames[collection] = typeName }
      return state.typeNames[collection]!
    }
    guard existing != typeName else { return }
    throw .collectionHasAnotherType(collection: collection, existing: existing, requested: typeName)
  }

  /// Locks a name for a store.
  ///
  /// - Parameter isConnected: Returns whether the store is still connected. It is called in the same step in which the
  ///   name is locked.
  func acquireLock(
    _ name: String, _ owner: ObjectIdentifier, isConnected: @Sendable () -> Bool
  ) throws(StoreError) -> StoreLockResult {
    let result = state.withLock { state -> Result<UInt64?, StoreError> in
      guard isConnected() else { return .failure(SimulatedStore.disconnectedError) }
      if state.locks[name] != nil { return .success(nil) }
      state.lastLockNumber += 1
      state.locks[name] = (owner, state.lastLockNumber)
      return .success(state.lastLockNumber)
    }
    guard let number = try result.get() else { return .held(releases: lockReleases.stream) }
    return .acquired(
      StoreLock {
        self.state.withLock { $0.locks[name]?.number == number }
      } unlock: {
        self.state.withLock { if $0.locks[name]?.number == number { $0.locks[name] = nil } }
        self.lockReleases.send(())
      })
  }

  /// Releases all locks of a store.
  func releaseLocks(of owner: ObjectIdentifier) {
    state.withLock { state in state.locks = state.locks.filter { $0.value.owner != owner } }
    lockReleases.send(())
  }

  /// Makes a commit.
  ///
  /// - Parameters:
  ///   - requests: The changes and the preconditions.
  ///   - tag: The tag of the commit.
  ///   - isConnected: Returns whether the store is still connected. It is called in the same step in which the commit is
  ///     made.
  func commit(
    _ requests: [Request], tag: StoreTag, isConnected: @Sendable () -> Bool
  ) -> Result<Commit, StoreError> {
    let time = now()
    return state.withLock { state -> Result<Commit, StoreError> in
      guard isConnected() else { return .failure(SimulatedStore.disconnectedError) }
      for request in requests {
        let tag = state.records[request.key]?.tag
        guard request.requirements.allSatisfy({ $0.isMet(by: tag, isUsable: tag != nil) }) else {
          return .failure(.preconditionFailed(request.key))
        }
      }
      var changes: [Change] = []
      for (index, request) in requests.enumerated() {
        switch request.action {
        case .none: break
        case .remove:
          if state.records.removeValue(forKey: request.key) != nil {
            changes.append(Change(key: request.key, record: nil))
          }
        case .save(let value):
          let record = Record(value: value, savedAt: time, tag: tag, order: (state.commits.count, index))
          state.records[request.key] = record
          changes.append(Change(key: request.key, record: record))
        }
      }
      let commit = Commit(tag: tag, time: time, number: state.commits.count, changesSomething: !changes.isEmpty)
      if commit.changesSomething { state.commits.append(changes) }
      return .success(commit)
    }
  }
}
