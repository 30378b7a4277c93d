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

  /// A place for a state, which is shared by copies of this value until one of them changes the state.
  ///
  /// Only the reference is moved when a state is changed in place.
  private final class Slot {
    var state: State?

    init(_ state: State?) {
      self.state = state
    }
  }

  private var states: [Key: Slot] = [:]
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
    get { states[key]?.state }
    _modify {
      let slot = changeableSlot(of: key) ?? Slot(nil)
      yield &slot.state
    }
  }

  /// The state of the key whose values are stored under a name.
  subscript(name: StoreKeyName) -> State? { name.id.flatMap { keys[$0] }.flatMap { states[$0]?.state } }

  /// The state of a key, unless it was released.
  subscript(id: ID) -> State? {
    get { states[id.key].flatMap { $0.state?.id == id ? $0.state : nil } }
    _modify {
      let slot = changeableSlot(of: id.key)
      let changed = slot?.state?.id == id ? slot : nil
      yield &(changed ?? Slot(nil)).state
    }
  }

  /// The slot of a key, which no copy of this value shares.
  private mutating func changeableSlot(of key: Key) -> Slot? {
    guard let index = states.index(forKey: key) else { return nil }
    if !isKnownUniquelyReferenced(&states.values[index]) { states.values[index] = Slot(states.values[index].state) }
    return states.values[index]
  }

  /// Applies the pending mutations of a key, unless it isn't open; see ``SyncState/fold()``.
  ///
  /// - Parameter hasHeldMutation: Whether a mutation of the key is one that this program can't read.
  /// - Returns: The mutations that are in conflict now; `nil` if the key isn't open.
  mutating func fold(
    _ id: ID, hasHeldMutation: Bool
  ) -> [SyncState<Source.Value, Source.Mutation>.ConflictedMutation]? {
    edit(id) { state in
      guard state.isOpen else { return nil }
      state.hasHeldMutation = hasHeldMutation
      return state.state.fold()
    } ?? nil
  }

  /// Changes the state of a key, unless it was released.
  @discardableResult
  mutating func edit<Result>(_ id: ID, _ body: (inout State) -> Result) -> Result? {
    guard let slot = changeableSlot(of: id.key), slot.state?.id == id else { return nil }
    return slot.state.edit(body)
  }

  /// The states of all keys, in the order of the keys' store ids.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of keys.
  var all: [State] { states.values.compactMap(\.state).sorted { $0.key.storeID < $1.key.storeID } }

  /// Adds the state of a key, which isn't open yet.
  mutating func add(_ key: Key, _ storeKey: StoreKey<Source.Value>, _ capabilities: SourceCapabilities<Source>) -> ID {
    if let state = states[key]?.state { return state.id }
    lastNumber += 1
    let id = ID(key: key, number: lastNumber)
    states[key] = Slot(State(id, storeKey, capabilities))
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
      self[key]?.invalidate()
      residues[key]?.invalidate()
    } else {
      for key in residues.keys where selection.contains(key) { residues[key]?.invalidate() }
      for key in states.keys where selection.contains(key) { self[key]?.invalidate() }
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
      self[key]?.isInIdleList = false
      if let oldest = self[key], let state = releaseUnlessInUse(oldest.id, isObserved: isObserved) {
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

extension Optional {
  /// Changes the value in place, if there is one.
  fileprivate mutating func edit<Result>(_ body: (inout Wrapped) -> Result) -> Result? {
    if case nil = self { return nil }
    return body(&self!)
  }
}
