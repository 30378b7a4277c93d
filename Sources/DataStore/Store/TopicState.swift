/// The last known state of the values of one collection: a pure state machine.
///
/// Methods record reads, saves and removals. For a read, the machine returns the action to take. It knows neither
/// decoded values nor channels, so one model test covers every type of value.
///
/// **Invariant**: The changes of one id are in the order of its recorded states. A read leads to a change only if it
/// finds a state other than the last recorded one. An external change that was replaced before a read found it is never
/// sent.
struct TopicState {
  /// The last known state of one id.
  enum Known: Equatable {
    case nothing
    case value(Edition, revision: UInt64)
    /// Bytes that are neither usable nor quarantined: a value of a future format or schema, a value that can't be
    /// decoded or migrated, or corrupt bytes whose quarantine failed.
    case unusable(Fingerprint)
    /// An entry that can't be read at all.
    case unreadable
  }

  /// The state that a read has found for one id.
  enum Found: Equatable {
    case nothing
    case value(Edition)
    case unusable(Fingerprint)
    case unreadable
  }

  /// The action to take after a read.
  enum Action: Equatable {
    /// Do nothing, because observers already have this value, or this is the id's first read, before it has observers.
    ///
    /// The value has the given revision.
    case keep(revision: UInt64)
    /// Do nothing, because nothing is stored, and nothing was known to be stored before.
    case keepNothing
    /// Send the value as a save with the given revision.
    case sendSaved(revision: UInt64)
    /// Send a removal with the given revision.
    case sendRemoved(revision: UInt64)
    /// Clear the replay without sending a removal, because the stored value can't be used, or such a value is gone.
    ///
    /// `isNew` is `true` if the read has found an unusable or unreadable value other than the last known one.
    case hide(isNew: Bool)
  }

  /// The last known states, by id; `nil` is the id of the only value of a collection.
  private var known: [String?: Known] = [:]

  /// Whether all ids have been listed.
  ///
  /// If so, no bytes are known to be stored for an id that isn't in ``known``.
  private var isListed = false

  /// The ids that had stored bytes, usable or not, when they were last read or written, in no particular order.
  var ids: [String?] {
    known.compactMap { id, state in if case .nothing = state { nil } else { .some(id) } }
  }

  /// The number of ids that the machine keeps any state for.
  var knownCount: Int { known.count }

  /// Returns the edition of an id's last known value, or `nil` if the last known state isn't a value.
  func edition(of id: String?) -> Edition? {
    if case .value(let edition, _) = known[id] { edition } else { nil }
  }

  /// Returns the revision of an id's last known value, or `nil` if the last known state isn't a value.
  func revision(of id: String?) -> UInt64? {
    if case .value(_, let revision) = known[id] { revision } else { nil }
  }

  /// Returns whether the last known state of an id is unusable bytes with this fingerprint.
  func isUnusable(_ fingerprint: Fingerprint, _ id: String?) -> Bool {
    known[id] == .unusable(fingerprint)
  }

  /// Reconciles the result of a read with the last known state.
  ///
  /// - Parameters:
  ///   - found: The state that the read has found.
  ///   - id: The id that was read.
  ///   - revision: The revision to use if the read has found a change.
  mutating func reconcile(_ found: Found, _ id: String?, revision: UInt64) -> Action {
    switch (found, known[id]) {
    case (.value(let edition), .value(let old, let knownRevision)) where old.fingerprint == edition.fingerprint:
      return .keep(revision: knownRevision)
    case (.value(let edition), nil) where !isListed:
      known[id] = .value(edition, revision: 0)
      return .keep(revision: 0)
    case (.value(let edition), _):
      known[id] = .value(edition, revision: revision)
      return .sendSaved(revision: revision)
    case (.nothing, .value):
      recordAbsence(of: id)
      return .sendRemoved(revision: revision)
    case (.nothing, let old):
      recordAbsence(of: id)
      return old == nil || old == .nothing ? .keepNothing : .hide(isNew: false)
    case (.unusable(let fingerprint), let old):
      known[id] = .unusable(fingerprint)
      return .hide(isNew: old != .unusable(fingerprint))
    case (.unreadable, let old):
      known[id] = .unreadable
      return .hide(isNew: old != .unreadable)
    }
  }

  /// Records a save by this store.
  mutating func recordSave(_ edition: Edition, _ id: String?, revision: UInt64) {
    known[id] = .value(edition, revision: revision)
  }

  /// Records that nothing is stored for an id: a read found nothing, or this store removed or quarantined the bytes.
  mutating func recordAbsence(of id: String?) {
    // Once all ids are listed, a missing entry means that nothing is stored. Without an entry for each removed id, the
    // state of a collection whose ids come and go stays small.
    known[id] = isListed ? nil : Known.nothing
  }

  /// Records that nothing is stored for any id.
  mutating func recordAbsenceOfAll() {
    for id in Array(known.keys) { recordAbsence(of: id) }
  }

  /// Records that all ids have been listed and read.
  mutating func recordListing() {
    guard !isListed else { return }
    isListed = true
    known = known.filter { $0.value != .nothing }
  }
}
