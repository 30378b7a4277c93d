/// What a store knows about the values of one collection: a pure state machine.
///
/// Methods record what was read, written and removed, and return what observers are to be sent. It knows neither values nor
/// channels, so one model test covers every type of value.
///
/// **Invariant**: The changes it returns for one id, in order, are exactly the differences between what was recorded
/// first and last: no state is sent twice, and none that was replaced unseen is sent at all.
struct TopicState {
  /// The last known state of one id.
  enum Known: Equatable {
    case nothing
    case value(Edition, revision: UInt64)
    /// Bytes that are neither a value nor quarantined: of a future schema, or of one that can't be migrated.
    case unusable(Fingerprint)
    /// Something that can't be read at all.
    case unreadable
  }

  /// What a read found under one id.
  enum Found: Equatable {
    case nothing
    case value(Edition)
    case unusable(Fingerprint)
    case unreadable
  }

  /// What is to be done after a read.
  enum Action: Equatable {
    /// Nothing: observers have this value, which has this revision.
    case keep(revision: UInt64)
    /// Nothing: observers know that there is no value.
    case keepNothing
    /// Send the value; it has this revision.
    case sendSaved(revision: UInt64)
    /// Send a removal; it has this revision.
    case sendRemoved(revision: UInt64)
    /// Empty the replay: there is no value for observers, although none was removed.
    ///
    /// `isNew` unless the last read found the same.
    case hide(isNew: Bool)
  }

  private var known: [String?: Known] = [:]

  /// Whether all ids were listed once, so that nothing is stored for an id that isn't in ``known``.
  private var isListed = false

  /// The ids under which something is stored as far as is known, in no order.
  var ids: [String?] {
    known.compactMap { id, known in if case .nothing = known { nil } else { .some(id) } }
  }

  /// The number of ids that anything is remembered about.
  var knownCount: Int { known.count }

  /// The stored value of an id, if the last read or write left one.
  func edition(of id: String?) -> Edition? {
    if case .value(let edition, _) = known[id] { edition } else { nil }
  }

  /// The revision of the stored value of an id, if the last read or write left one.
  func revision(of id: String?) -> UInt64? {
    if case .value(_, let revision) = known[id] { revision } else { nil }
  }

  /// Whether the last read found these bytes and they were not usable.
  func isUnusable(_ fingerprint: Fingerprint, _ id: String?) -> Bool {
    known[id] == .unusable(fingerprint)
  }

  /// Records what a read found.
  ///
  /// - Parameter revision: The revision of the change, if it turns out to be one.
  mutating func reconcile(_ found: Found, _ id: String?, revision: UInt64) -> Action {
    switch (found, known[id]) {
    case (.value(let edition), .value(let old, let revision)) where old.fingerprint == edition.fingerprint:
      return .keep(revision: revision)
    case (.value(let edition), nil) where !isListed:
      known[id] = .value(edition, revision: 0)
      return .keep(revision: 0)
    case (.value(let edition), _):
      known[id] = .value(edition, revision: revision)
      return .sendSaved(revision: revision)
    case (.nothing, .value):
      forget(id)
      return .sendRemoved(revision: revision)
    case (.nothing, let old):
      forget(id)
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

  /// Records that nothing is stored for an id: it was removed by this store, or its bytes were quarantined.
  mutating func forget(_ id: String?) {
    // Once all ids are listed, an id that is missing means the same, and a collection of ever new ids doesn't grow.
    known[id] = isListed ? nil : Known.nothing
  }

  /// Records that nothing is stored for any id.
  mutating func forgetAll() {
    for id in Array(known.keys) { forget(id) }
  }

  /// Records that all ids have been listed and read.
  mutating func recordListing() {
    guard !isListed else { return }
    isListed = true
    known = known.filter { $0.value != .nothing }
  }
}

/// What identifies the stored bytes of a value, without its content.
struct Edition: Equatable, Sendable {
  let fingerprint: Fingerprint
  let header: Envelope.Header
}
