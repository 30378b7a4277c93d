internal import DataStore
internal import Foundation

/// The states of the keys in use, and what is remembered of recently released keys.
///
/// - Complexity: O(1) for each call, unless stated otherwise. Memory use depends on the number of keys in use, not on
///   the number of keys that were ever used.
struct KeyStates<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias State = KeyState<Source>
  typealias ID = KeyID<Key>

  /// The maximum number of released keys whose last fetch is remembered, which bounds the memory.
  ///
  /// Releasing one more key discards what is remembered of all others.
  private static var residueLimit: Int { 4_096 }

  /// The maximum number of ``idleKeys``.
  ///
  /// These keys stay open, so that an observer that subscribes soon after the last use gets the current value at once.
  private static var idleLimit: Int { 16 }

  private var states: [Key: State] = [:]
  /// The keys of ``states``, by their store ids.
  private var keys: [String: Key] = [:]
  private var lastNumber: UInt64 = 0
  /// The keys in the order in which they became idle.
  ///
  /// A key keeps its place when it is used again. The list may contain keys that are needed again or released.
  private var idleKeys = FIFO<Key>()
  /// What is remembered of released keys.
  private var residues: [Key: State.Residue] = [:]
  private var invalidations = Invalidations<Key>()

  subscript(key: Key) -> State? {
    get { states[key] }
    _modify { yield &states[key] }
  }

  /// The state of the key whose values are stored under a name.
  subscript(name: StoreKeyName) -> State? { name.id.flatMap { keys[$0] }.flatMap { states[$0] } }

  /// The state of a key, unless it was released.
  subscript(id: ID) -> State? {
    get { states[id.key].flatMap { $0.id == id ? $0 : nil } }
    _modify {
      if states[id.key]?.id == id {
        yield &states[id.key]
      } else {
        var none = State?.none
        yield &none
      }
    }
  }

  /// The states of all keys, in the order of the keys' store ids.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of keys.
  var all: [State] { states.values.sorted { $0.key.storeID < $1.key.storeID } }

  /// Adds the state of a key, which isn't open yet.
  mutating func add(_ key: Key, _ storeKey: StoreKey<Source.Value>, _ capabilities: SourceCapabilities<Source>) -> ID {
    if let state = states[key] { return state.id }
    lastNumber += 1
    let id = ID(key: key, number: lastNumber)
    states[key] = State(id, storeKey, capabilities)
    keys[key.storeID] = key
    return id
  }

  private mutating func remove(_ key: Key) {
    states[key] = nil
    keys[key.storeID] = nil
  }

  /// Removes the state of a key that couldn't be opened, unless another call is about to open it.
  mutating func removeUnopened(_ id: ID) {
    if let state = self[id], !state.isOpen, state.useCount == 0 { remove(id.key) }
  }

  /// Opens a key.
  ///
  /// - Parameters:
  ///   - id: The id of the key's state.
  ///   - stored: The stored value; `nil` if there is none.
  mutating func open(_ id: ID, _ stored: StoredValue<Source.Value>?) {
    let residue = residues.removeValue(forKey: id.key)
    guard let isResidueValid = self[id]?.open(stored, residue) else { return }
    // A valid residue already says whether the value is stale.
    if !isResidueValid, let stored, invalidations.contains(id.key, savedAt: stored.savedAt) { self[id]?.invalidate() }
  }

  /// Marks values as stale, including those of keys that aren't in use.
  ///
  /// - Complexity: O(*n*), where *n* is the number of keys in use or remembered; O(1) for a single key.
  mutating func invalidate(_ selection: KeySelection<Key>, at now: Date) {
    invalidations.add(selection, at: now)
    if case .key(let key) = selection {
      states[key]?.invalidate()
      residues[key]?.invalidate()
    } else {
      for key in residues.keys where selection.contains(key) { residues[key]?.invalidate() }
      for key in states.keys where selection.contains(key) { states[key]?.invalidate() }
    }
  }

  /// Removes the states of the selected keys, even if they are needed, and what is remembered of these keys.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of keys in use or remembered.
  /// - Returns: The removed states, in the order of the keys' store ids.
  mutating func remove(where isSelected: (Key) -> Bool) -> [State] {
    for key in residues.keys where isSelected(key) { residues[key] = nil }
    let removed = all.filter { isSelected($0.key) }
    for state in removed { remove(state.key) }
    return removed
  }

  /// Records that a use of a key has ended.
  ///
  /// An idle key stays open until more than ``idleLimit`` have become idle after it.
  ///
  /// - Parameters:
  ///   - id: The id of the key's state.
  ///   - isObserved: Returns whether a key is observed, and therefore stays open.
  /// - Returns: The states that are released.
  mutating func release(_ id: ID, isObserved: (Key) -> Bool) -> [State] {
    guard let state = self[id], state.isIdle else { return [] }
    if !state.isInIdleList {
      self[id]?.isInIdleList = true
      idleKeys.append(id.key)
    }
    var released: [State] = []
    while idleKeys.count > Self.idleLimit, let key = idleKeys.removeFirst() {
      states[key]?.isInIdleList = false
      if let oldest = states[key], let state = releaseUnlessInUse(oldest.id, isObserved: isObserved) {
        released.append(state)
      }
    }
    return released
  }

  /// Releases a key unless it is in use, and remembers its last fetch.
  ///
  /// - Returns: The released state.
  mutating func releaseUnlessInUse(_ id: ID, isObserved: (Key) -> Bool) -> State? {
    guard let state = self[id], state.isIdle, !isObserved(id.key) else { return nil }
    remove(id.key)
    if residues.count >= Self.residueLimit { residues = [:] }
    residues[id.key] = state.residue
    return state
  }
}
