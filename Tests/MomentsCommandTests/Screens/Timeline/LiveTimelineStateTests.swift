import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import TerminalUI
import Testing

@testable import MomentsCommand

struct LiveTimelineStateTests {
  private static let noon = Date(timeIntervalSince1970: 1_605_528_000)

  private static func details(_ ids: [String], liked: Set<String> = []) -> MomentsDetails {
    .fixture(momentIDs: ids, likedMomentIDs: liked)
  }

  private func state(_ details: MomentsDetails, canGoOffline: Bool = true) -> LiveTimelineState {
    var state = LiveTimelineState(canGoOffline: canGoOffline)
    state.show(details, at: Self.noon)
    return state
  }

  // MARK: Observers

  @Test func `A frame may be drawn when all three observers saw the same`() {
    var state = LiveTimelineState()
    #expect(state.isConsistent)
    state.showInList(Self.details(["0"]), at: Self.noon)
    #expect(!state.isConsistent)
    state.detail = Self.details(["0"])
    #expect(!state.isConsistent)
    state.counted = Self.details(["0"])
    #expect(state.isConsistent)
    state.counted = Self.details(["0"], liked: ["0"])
    #expect(!state.isConsistent)
  }

  @Test func `The stored timeline has the age of its saving until something newer comes`() {
    let stored = Self.details(["0"])
    var state = LiveTimelineState(storedAt: Self.noon.addingTimeInterval(-300))
    #expect(state.model(at: Self.noon).source == nil)
    state.show(stored, at: Self.noon)
    #expect(state.model(at: Self.noon).source == .stored(age: "5 minutes ago"))
    #expect(state.activity == "Showing what was stored 5 minutes ago, asking for news.")
    #expect(state.model(at: Self.noon.addingTimeInterval(60)).source == .stored(age: "6 minutes ago"))
    state.show(Self.details(["0"], liked: ["0"]), at: Self.noon)
    #expect(state.model(at: Self.noon).source == .stored(age: "5 minutes ago"))
    state.loadBegan()
    state.show(Self.details(["0", "1"]), at: Self.noon)
    state.loadEnded(.newest, nil, at: Self.noon)
    #expect(state.model(at: Self.noon.addingTimeInterval(60)).source == .fetched(age: "1 minute ago"))
  }

  @Test func `Where nothing was stored, what comes first was fetched`() {
    #expect(state(Self.details(["0"])).model(at: Self.noon).source == .fetched(age: "now"))
  }

  @Test func `A timeline that is fetched unchanged is no longer the stored one`() {
    let stored = Self.details(["0"])
    var state = LiveTimelineState(storedAt: Self.noon.addingTimeInterval(-300))
    state.show(stored, at: Self.noon)
    state.loadBegan()
    #expect(state.model(at: Self.noon).isLoading)
    state.loadEnded(.newest, nil, at: Self.noon)
    #expect(!state.model(at: Self.noon).isLoading)
    #expect(state.model(at: Self.noon).source == .fetched(age: "now"))
  }

  @Test func `Older moments make the newest no newer`() {
    var state = LiveTimelineState(storedAt: Self.noon.addingTimeInterval(-300))
    state.show(Self.details(["1"]), at: Self.noon)
    state.loadBegan()
    state.show(Self.details(["1", "0"]), at: Self.noon)
    state.loadEnded(.older, nil, at: Self.noon)
    #expect(!state.model(at: Self.noon).isLoading)
    #expect(state.model(at: Self.noon).source == .stored(age: "5 minutes ago"))
    #expect(state.activity == "Older moments are here.")
    state.loadBegan()
    state.loadEnded(.newest, nil, at: Self.noon)
    state.loadBegan()
    state.loadEnded(.older, nil, at: Self.noon.addingTimeInterval(60))
    #expect(state.model(at: Self.noon.addingTimeInterval(60)).source == .fetched(age: "1 minute ago"))
  }

  @Test func `A load that failed keeps the stored timeline and its age`() {
    let stored = Self.details(["0"])
    var state = LiveTimelineState(storedAt: Self.noon.addingTimeInterval(-300))
    state.show(stored, at: Self.noon)
    state.loadBegan()
    state.loadEnded(.newest, .session(.timedOut), at: Self.noon)
    #expect(state.model(at: Self.noon).source == .stored(age: "5 minutes ago"))
    #expect(state.model(at: Self.noon).problem == MomentsRepoError.session(.timedOut).description)
    #expect(state.activity == "Not loaded: the server cannot be reached.")
    state.loadBegan()
    #expect(state.model(at: Self.noon).problem == nil)
  }

  // MARK: Selection

  @Test func `Keys move the selection and stop at both ends`() {
    var state = state(Self.details(["0", "1", "2"]))
    let keys: [Key] = [
      .up, .character("j"), .down, .down, .character("k"), .end, .home, .character("G"), .character("g"),
    ]
    var selections: [Int] = []
    for key in keys {
      #expect(state.press(key) == nil)
      selections.append(state.model(at: Self.noon).selection)
    }
    #expect(selections == [0, 1, 2, 2, 1, 2, 0, 2, 0])
  }

  @Test func `A page key moves by what fits`() {
    var state = state(Self.details((0..<10).map(String.init)))
    _ = state.press(.pageDown, pageHeight: 4)
    #expect(state.model(at: Self.noon).selection == 4)
    _ = state.press(.pageUp, pageHeight: 4)
    #expect(state.model(at: Self.noon).selection == 0)
  }

  @Test func `The selection stays with its moment, and near its place when that is gone`() {
    var state = state(Self.details(["a", "b", "c"]))
    _ = state.press(.down)
    state.show(Self.details(["new", "a", "b", "c"]), at: Self.noon)
    #expect(state.model(at: Self.noon).selection == 2)
    #expect(state.model(at: Self.noon).detail?.row.id == "b")
    state.show(Self.details(["new", "a", "c"]), at: Self.noon)
    #expect(state.model(at: Self.noon).selection == 2)
    #expect(state.model(at: Self.noon).detail?.row.id == "c")
    state.show(Self.details(["new"]), at: Self.noon)
    #expect(state.model(at: Self.noon).selection == 0)
  }

  @Test func `An empty timeline has nothing to move to or to like`() {
    var state = state(Self.details([]))
    #expect([Key.down, .end, .enter, .character("l")].map { state.press($0) } == [nil, nil, nil, nil])
    #expect(state.model(at: Self.noon).detail == nil)
  }

  // MARK: Requests

  @Test func `Keys ask for what they say`() {
    var details = Self.details(["0", "1"], liked: ["1"])
    details.pageInfo = MomentsDetails.PageInfo(endCursor: "1", hasNextPage: true)
    var state = state(details)
    let keys: [Key] = [
      .character("l"), .down, .enter, .character("o"), .character("o"), .character("r"), .character("m"),
      .character("q"), .character("x"), .escape,
    ]
    #expect(
      keys.map { state.press($0) } == [
        .setLike(true, momentID: "0"), nil, .setLike(false, momentID: "1"), .setOnline(false), .setOnline(true),
        .reload, .loadMore, .quit, nil, nil,
      ])
  }

  @Test func `What cannot be done is neither offered nor asked for`() {
    var state = state(Self.details(["0"]), canGoOffline: false)
    #expect([Key.character("o"), .character("m")].map { state.press($0) } == [nil, nil])
    #expect(state.model(at: Self.noon).keys.map(\.action) == ["quit", "move", "like", "reload"])
    #expect(state.model(at: Self.noon).isOnline)
  }

  @Test func `The keys say what they do next`() {
    var details = Self.details(["0"], liked: ["0"])
    details.pageInfo = MomentsDetails.PageInfo(endCursor: "0", hasNextPage: true)
    var state = state(details)
    #expect(
      state.model(at: Self.noon).keys.map(\.action) == ["quit", "move", "unlike", "go offline", "reload", "more"])
    _ = state.press(.character("o"))
    #expect(state.model(at: Self.noon).keys.map(\.action)[3] == "go online")
    #expect(!state.model(at: Self.noon).isOnline)
    #expect(state.activity == "The network is gone.")
  }

  // MARK: Likes

  @Test func `A like that the server does not have is pending in the list, the detail and the header`() {
    var state = state(Self.details(["0", "1"]))
    state.pendingLikes = ["1"]
    #expect(state.model(at: Self.noon).rows.map(\.isPending) == [false, true])
    #expect(state.model(at: Self.noon).detail?.row.isPending == false)
    _ = state.press(.down)
    #expect(state.model(at: Self.noon).detail?.row.isPending == true)
    #expect(state.model(at: Self.noon).pendingCount == 1)
    state.pendingLikes = []
    #expect(state.model(at: Self.noon).rows.map(\.isPending) == [false, false])
    #expect(state.model(at: Self.noon).pendingCount == 0)
  }

  @Test func `The activity line says what became of a like`() {
    var state = state(Self.details(["0"]))
    var activities: [String] = []
    for result in [.success(.confirmed), .success(.queued), .failure(.session(.timedOut))]
      as [Result<MomentLikeOutcome, MomentsRepoError>]
    {
      for isLiked in [true, false] {
        state.likeEnded(isLiked, momentID: "0", with: result)
        activities.append(state.activity)
      }
    }
    #expect(
      activities == [
        "Liked Taylor Swift: the pic is awesome", "No longer liked: Taylor Swift: the pic is awesome",
        "Kept until the network is back: like Taylor Swift: the pic is awesome",
        "Kept until the network is back: unlike Taylor Swift: the pic is awesome",
        "Not liked, Taylor Swift: the pic is awesome: the server cannot be reached.",
        "Still liked, Taylor Swift: the pic is awesome: the server cannot be reached.",
      ])
  }

  @Test func `A call that was cancelled says nothing`() {
    var state = state(Self.details(["0"]))
    state.activity = "before"
    state.likeEnded(true, momentID: "0", with: .failure(.cancelled))
    state.loadBegan()
    state.loadEnded(.newest, .cancelled, at: Self.noon)
    #expect(state.activity == "before")
    #expect(state.model(at: Self.noon).problem == nil)
  }
}

extension LiveTimelineState {
  /// Lets all three observers see a timeline.
  mutating func show(_ details: MomentsDetails, at now: Date) {
    showInList(details, at: now)
    detail = details
    counted = details
  }
}
