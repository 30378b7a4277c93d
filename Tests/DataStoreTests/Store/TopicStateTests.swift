import Foundation
import MulticastTesting
import TestRounds
import Testing

@testable import DataStore

@Suite struct TopicStateTests {
  private static func edition(_ number: Int) -> Edition {
    Edition(
      fingerprint: Fingerprint(Data("\(number)".utf8)),
      header: Envelope.Header(schema: 1, savedAt: Date(timeIntervalSince1970: 0), tag: StoreTag(), partIDs: nil))
  }

  @Test func `A value from before the store object existed has revision 0 and is not sent`() {
    var state = TopicState()
    let edition = Self.edition(1)
    #expect(state.reconcile(.value(edition), "a", revision: 5) == .keep(revision: 0))
    #expect(state.reconcile(.value(edition), "a", revision: 6) == .keep(revision: 0))
    #expect(state.edition(of: "a") == edition)
  }

  @Test func `A value is sent if it appears after all ids were listed`() {
    var state = TopicState()
    state.recordListing()
    #expect(state.reconcile(.value(Self.edition(1)), "a", revision: 5) == .sendSaved(revision: 5))
    #expect(state.revision(of: "a") == 5)
  }

  @Test func `A value that this store has saved is not sent again as an external change`() {
    var state = TopicState()
    let edition = Self.edition(1)
    state.recordSave(edition, nil, revision: 3)
    #expect(state.reconcile(.value(edition), nil, revision: 4) == .keep(revision: 3))
    #expect(state.reconcile(.value(Self.edition(2)), nil, revision: 4) == .sendSaved(revision: 4))
    #expect(state.reconcile(.nothing, nil, revision: 5) == .sendRemoved(revision: 5))
    #expect(state.reconcile(.nothing, nil, revision: 6) == .keepNothing)
  }

  @Test func `An unusable value is reported as new only once, until another state is found`() {
    var state = TopicState()
    let (first, second) = (Fingerprint(Data("1".utf8)), Fingerprint(Data("2".utf8)))
    #expect(state.reconcile(.unusable(first), "a", revision: 1) == .hide(isNew: true))
    #expect(state.reconcile(.unusable(first), "a", revision: 1) == .hide(isNew: false))
    #expect(state.isUnusable(first, "a"))
    #expect(state.reconcile(.unusable(second), "a", revision: 1) == .hide(isNew: true))
    #expect(state.reconcile(.unreadable, "a", revision: 1) == .hide(isNew: true))
    #expect(state.reconcile(.unreadable, "a", revision: 1) == .hide(isNew: false))
    // The unreadable value is gone. Observers never had it, so no removal is sent.
    #expect(state.reconcile(.nothing, "a", revision: 1) == .hide(isNew: false))
    #expect(state.reconcile(.nothing, "a", revision: 1) == .keepNothing)
  }

  /// Compares the actions of the state machine with those that ``Model`` expects.
  ///
  /// Nothing is sent when a value becomes unusable or unreadable, or when such a value is gone: the action is then
  /// `hide`.
  @Test func `In any sequence of events, each change that is found is sent once, in order, and nothing else is sent`() {
    for seed in 0..<Rounds.count(200, full: 2_000) {
      var random = SplitMix64(seed: UInt64(seed))
      var state = TopicState()
      var model = Model()
      for step in 1...60 {
        let id = [nil, "a", "b"].randomElement(using: &random)!
        switch Int.random(in: 0..<10, using: &random) {
        case 0...3:
          let found = model.changeExternally(id, using: &random)
          #expect(
            state.reconcile(found, id, revision: model.revision + 1) == model.reconcile(found, id),
            "seed \(seed), step \(step)")
        case 4...5:
          let found = model.stored[id] ?? .nothing
          #expect(
            state.reconcile(found, id, revision: model.revision + 1) == model.reconcile(found, id),
            "seed \(seed), step \(step)")
        case 6...7:
          let edition = model.save(id)
          state.recordSave(edition, id, revision: model.revision)
        case 8:
          model.remove(id)
          state.recordAbsence(of: id)
        default:
          guard model.hasSeenAll else { continue }
          model.isListed = true
          state.recordListing()
        }
      }
      let ids = Set(model.seen.filter { $0.value != .nothing }.keys)
      #expect(Set(state.ids) == ids, "seed \(seed)")
      if model.isListed { #expect(state.knownCount == ids.count, "seed \(seed)") }
    }
  }

  /// A model of the stored states, and of those that the store knows because it has read or written them.
  private struct Model {
    var stored: [String?: TopicState.Found] = [:]
    var seen: [String?: TopicState.Found] = [:]
    var revisions: [String?: UInt64] = [:]
    var revision: UInt64 = 0
    var isListed = false
    private var editionCount = 0

    /// Whether the store knows all stored states.
    ///
    /// A listing reads all ids, so it is recorded only if this is `true`.
    var hasSeenAll: Bool { stored.allSatisfy { id, found in seen[id] == found } }

    /// Changes the stored state of an id externally.
    ///
    /// - Returns: The new state.
    mutating func changeExternally(_ id: String?, using random: inout SplitMix64) -> TopicState.Found {
      editionCount += 1
      let found: TopicState.Found =
        switch Int.random(in: 0..<5, using: &random) {
        case 0: .nothing
        case 1: .unusable(Fingerprint(Data("\(editionCount)".utf8)))
        case 2: .unreadable
        default: .value(TopicStateTests.edition(editionCount))
        }
      stored[id] = found
      return found
    }

    /// Records the state that a read has found, and returns the action that is expected then.
    mutating func reconcile(_ found: TopicState.Found, _ id: String?) -> TopicState.Action {
      let old = seen[id]
      seen[id] = found
      switch found {
      case .value:
        if found == old { return .keep(revision: revisions[id]!) }
        guard old != nil || isListed else {
          revisions[id] = 0
          return .keep(revision: 0)
        }
        revision += 1
        revisions[id] = revision
        return .sendSaved(revision: revision)
      case .nothing:
        if case .value = old {
          revision += 1
          return .sendRemoved(revision: revision)
        }
        return old == nil || old == .nothing ? .keepNothing : .hide(isNew: false)
      case .unusable, .unreadable: return .hide(isNew: found != old)
      }
    }

    mutating func save(_ id: String?) -> Edition {
      editionCount += 1
      revision += 1
      let edition = TopicStateTests.edition(editionCount)
      (stored[id], seen[id], revisions[id]) = (.value(edition), .value(edition), revision)
      return edition
    }

    mutating func remove(_ id: String?) {
      (stored[id], seen[id]) = (.nothing, .nothing)
    }
  }
}
