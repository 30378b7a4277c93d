import DataStore
import Foundation
import MomentsTesting
import Multicast
import Testing

@testable import Moments
@testable import Repository

/// How often likes are laid over a timeline, counted.
@Suite final class MomentsTimelineTests {
  private static let momentIDs = ["a", "b", "c", "d"]

  private let count = Count()
  private lazy var timeline = MomentsTimeline { [count] like, details in
    count.value.withLock { $0 += 1 }
    like.apply(to: &details)
  }

  private final class Count: Sendable {
    let value = Lock(0)
  }

  /// What a change costs, with the look at the timeline behind it.
  private func applications(_ change: (inout MomentsTimeline) -> Void) -> Int {
    let before = count.value.withLock { $0 }
    change(&timeline)
    for _ in 0..<3 { _ = (timeline.details, timeline.loadState, timeline.pendingLikes) }
    return count.value.withLock { $0 } - before
  }

  private static func stored(_ revision: UInt64, liked: Set<String> = []) -> StoredValue<MomentsDetails> {
    StoredValue(
      value: .fixture(momentIDs: momentIDs, likedMomentIDs: liked), savedAt: Date(timeIntervalSince1970: 0),
      revision: revision, tag: StoreTag())
  }

  private static func like(_ momentID: String, _ isLiked: Bool = true) -> MomentLike {
    MomentLike(userID: "0", momentID: momentID, isLiked: isLiked)
  }

  private func liked() -> [String]? {
    timeline.details?.moments.filter { $0.isLiked == true }.map(\.id)
  }

  @Test func `A like that is made is applied once, on top of those that lie there`() {
    #expect(applications { $0.receive(Self.stored(1)) } == 0)
    for number in 0..<50 {
      let like = Self.like(Self.momentIDs[number % 3], number % 2 == 0)
      #expect(applications { $0.make(like, as: MutationID(rawValue: "\(number)")) } == 1)
    }
    #expect(liked() == ["a"])
    #expect(timeline.pendingLikes == ["a": true, "b": false, "c": false])
    #expect(timeline.loadState.loadedValue?.isPending == true)
  }

  @Test func `What changes neither the stored timeline nor a like applies none`() {
    let id = MutationID(rawValue: "1")
    _ = applications {
      $0.receive(Self.stored(1))
      $0.make(Self.like("a"), as: id)
      $0.make(Self.like("b"), as: MutationID(rawValue: "2"))
    }
    let applications = applications { timeline in
      let load = timeline.beginLoading(.whole)
      let ticket = timeline.beginSending(id).ticket
      let request = timeline.beginRequest()
      let arrival = timeline.beginRequest()
      #expect(timeline.beginSaving(ticket, arrivedAt: arrival) == true)
      timeline.endSaving(2)
      #expect(timeline.beginSaving(request, arrivedAt: arrival) == false)
      timeline.saved(2, requestedAt: ticket, confirming: id)
      timeline.confirm(MutationID(rawValue: "2"))
      timeline.refuse(MutationID(rawValue: "unknown"))
      timeline.endLoading(load, nil)
    }
    #expect(applications == 0)
    #expect(liked() == ["a", "b"])
  }

  @Test func `A timeline that arrives has the remaining likes applied once each`() {
    _ = applications { timeline in
      timeline.receive(Self.stored(1))
      for id in Self.momentIDs { timeline.make(Self.like(id), as: MutationID(rawValue: id)) }
      timeline.saved(2, requestedAt: timeline.beginRequest(), confirming: MutationID(rawValue: "a"))
    }
    #expect(applications { $0.receive(Self.stored(2, liked: ["a"])) } == 3)
    #expect(liked() == Self.momentIDs)
    #expect(timeline.pendingLikes == ["b": true, "c": true, "d": true])
    #expect(applications { $0.refuse(MutationID(rawValue: "c")) } == 2)
    #expect(liked() == ["a", "b", "d"])
    #expect(timeline.pendingLikes == ["b": true, "d": true])
    // Where the timeline arrived before it is known to contain the like.
    #expect(applications { $0.saved(2, requestedAt: $0.beginRequest(), confirming: MutationID(rawValue: "b")) } == 1)
    #expect(timeline.pendingLikes == ["d": true])
    #expect(liked() == ["a", "d"])
  }

  @Test func `Likes of an earlier process are laid under the present ones, each applied once`() {
    let entries = Self.momentIDs.map { id in
      MutationEntry(
        id: MutationID(rawValue: id), orderingKey: "0", mutation: Self.like(id),
        enqueuedAt: Date(timeIntervalSince1970: 0))
    }
    _ = applications {
      $0.receive(Self.stored(1))
      $0.make(Self.like("b", false), as: MutationID(rawValue: "new"))
    }
    #expect(applications { $0.restore(entries) } == 5)
    #expect(liked() == ["a", "c", "d"])
    #expect(timeline.pendingLikes == ["a": true, "b": false, "c": true, "d": true])
  }
}
