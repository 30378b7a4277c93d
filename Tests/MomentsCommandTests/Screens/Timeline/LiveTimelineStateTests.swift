import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Repository
import TerminalUI
import Testing

@testable import MomentsCommand

struct LiveTimelineStateTests {
  fileprivate static let noon = Date(timeIntervalSince1970: 1_605_528_000)

  private static let fiveMinutesBeforeNoon = noon.addingTimeInterval(-300)

  private static func details(_ ids: [String], liked: Set<String> = []) -> MomentsDetails {
    .fixture(momentIDs: ids, likedMomentIDs: liked)
  }

  /// A state, and in `timeline` the values that the screen's view model would show.
  ///
  /// A class, so that `#expect` can call methods that change the state.
  private final class Screen {
    private(set) var state: LiveTimelineState
    var timeline = LiveTimelineState.Timeline()

    init(canGoOffline: Bool = true, quit: KeyHint = KeyHint(key: "q", action: "quit")) {
      state = LiveTimelineState(openedAt: LiveTimelineStateTests.noon, canGoOffline: canGoOffline, quit: quit)
    }

    convenience init(_ details: MomentsDetails, canGoOffline: Bool = true) {
      self.init(canGoOffline: canGoOffline)
      show(details)
    }

    var activity: String { state.activity }

    var isConsistent: Bool { state.isConsistent(with: timeline) }

    /// Shows a timeline in all three observers: the list, the detail and the counter.
    func show(_ details: MomentsDetails?, savedAt: Date = LiveTimelineStateTests.noon) {
      showInList(details, savedAt: savedAt)
      showInDetail(details, savedAt: savedAt)
      showInCounter(details)
    }

    func showInList(_ details: MomentsDetails?, savedAt: Date = LiveTimelineStateTests.noon) {
      timeline.details = details
      timeline.savedAt = details.map { _ in savedAt }
      timeline.rows = (details?.moments ?? []).map {
        TimelineScreen.Model.Row(
          id: $0.id, userName: $0.userDetails.name, title: $0.title, isLiked: $0.isLiked ?? false,
          likeCount: $0.likes?.count ?? 0)
      }
    }

    func showInDetail(_ details: MomentsDetails?, savedAt: Date = LiveTimelineStateTests.noon) {
      state.showDetail(details.map { LoadedValue($0, savedAt: savedAt) }, at: LiveTimelineStateTests.noon)
    }

    func showInCounter(_ details: MomentsDetails?) { state.counterTimeline = details }

    func setOnline(_ isOnline: Bool) { state.isOnline = isOnline }

    func loadEnded(_ load: LiveTimelineState.Load, _ error: MomentsRepoError? = nil) { state.loadEnded(load, error) }

    func likeEnded(_ isLiked: Bool, with result: Result<MomentLikeOutcome, MomentsRepoError>) {
      state.likeEnded(isLiked, "it", with: result)
    }

    @discardableResult
    func press(_ key: Key, pageHeight: Int = 10) -> LiveTimelineState.Request? {
      state.press(key, in: timeline, pageHeight: pageHeight)
    }

    func model(at now: Date = LiveTimelineStateTests.noon) -> TimelineScreen.Model {
      state.model(of: timeline, at: now)
    }
  }

  // MARK: Observers

  @Test func `A frame may be drawn when all three observers have the same value`() {
    let screen = Screen()
    #expect(screen.isConsistent)
    screen.showInList(Self.details(["0"]))
    #expect(!screen.isConsistent)
    screen.showInDetail(Self.details(["0"]))
    #expect(!screen.isConsistent)
    screen.showInCounter(Self.details(["0"]))
    #expect(screen.isConsistent)
    screen.showInCounter(Self.details(["0"], liked: ["0"]))
    #expect(!screen.isConsistent)
  }

  @Test func `A removed timeline leaves an empty screen`() {
    let screen = Screen(Self.details(["0", "1"]))
    screen.press(.down)
    screen.show(nil)
    #expect(screen.isConsistent)
    let model = screen.model()
    #expect(model.userName == nil)
    #expect(model.source == nil)
    #expect(model.rows == [])
    #expect(model.detail == nil)
    #expect(model.likeCount == 0)
  }

  @Test func `The timeline is shown as stored, with its age, until a fetched one arrives`() {
    let screen = Screen()
    #expect(screen.model().source == nil)
    screen.show(Self.details(["0"]), savedAt: Self.fiveMinutesBeforeNoon)
    #expect(screen.model().source == .stored(age: "5 minutes ago"))
    #expect(screen.activity == "Showing the timeline stored 5 minutes ago; checking for updates.")
    #expect(screen.model(at: Self.noon.addingTimeInterval(60)).source == .stored(age: "6 minutes ago"))
    screen.show(Self.details(["0"], liked: ["0"]), savedAt: Self.fiveMinutesBeforeNoon)
    #expect(screen.model().source == .stored(age: "5 minutes ago"))
    screen.show(Self.details(["0"], liked: ["0"]))
    #expect(screen.model(at: Self.noon.addingTimeInterval(60)).source == .fetched(age: "1 minute ago"))
  }

  @Test func `A stored timeline is announced only once`() {
    let screen = Screen()
    screen.setOnline(false)
    screen.show(Self.details(["0"]), savedAt: Self.fiveMinutesBeforeNoon)
    #expect(screen.activity == "Showing the timeline stored 5 minutes ago; the network is down.")
    screen.loadEnded(.newest, .session(.timedOut))
    screen.show(Self.details(["0"], liked: ["0"]), savedAt: Self.fiveMinutesBeforeNoon)
    #expect(screen.activity == "Loading failed: the server cannot be reached.")
  }

  @Test func `Without a stored timeline, the first timeline counts as fetched`() {
    let screen = Screen(Self.details(["0"]))
    #expect(screen.model().source == .fetched(age: "now"))
    #expect(screen.activity == "Opening the timeline…")
  }

  @Test func `The screen says nothing about moments before the store was read`() {
    let screen = Screen()
    #expect(!screen.model().isRead)
    screen.timeline.isEmpty = true
    #expect(screen.model().isRead)
    #expect(Screen(Self.details([])).model().isRead)
  }

  @Test func `The result of a load is shown`() {
    let screen = Screen(Self.details(["0"]))
    screen.loadEnded(.newest)
    #expect(screen.activity == "The timeline is up to date.")
    screen.loadEnded(.older)
    #expect(screen.activity == "Loaded older moments.")
    screen.loadEnded(.older, .session(.timedOut))
    #expect(screen.activity == "Loading failed: the server cannot be reached.")
    screen.loadEnded(.newest, .queueFull)
    #expect(screen.activity == "Loading failed: \(MomentsRepoError.queueFull.description)")
  }

  // MARK: Selection

  @Test func `Keys move the selection, which stops at both ends of the list`() {
    let screen = Screen(Self.details(["0", "1", "2"]))
    let keys: [Key] = [
      .up, .character("j"), .down, .down, .character("k"), .end, .home, .character("G"), .character("g"),
    ]
    var selections: [Int] = []
    for key in keys {
      #expect(screen.press(key) == nil)
      selections.append(screen.model().selection)
    }
    #expect(selections == [0, 1, 2, 2, 1, 2, 0, 2, 0])
  }

  @Test func `A page key moves by the height of a page`() {
    let screen = Screen(Self.details((0..<10).map { "\($0)" }))
    screen.press(.pageDown, pageHeight: 4)
    #expect(screen.model().selection == 4)
    screen.press(.pageUp, pageHeight: 4)
    #expect(screen.model().selection == 0)
  }

  @Test func `The selection follows its moment, and stays nearby when the moment is removed`() {
    let screen = Screen(Self.details(["a", "b", "c"]))
    screen.press(.down)
    screen.show(Self.details(["new", "a", "b", "c"]))
    #expect(screen.model().selection == 2)
    #expect(screen.model().detail?.row.id == "b")
    screen.show(Self.details(["new", "a", "c"]))
    #expect(screen.model().selection == 2)
    #expect(screen.model().detail?.row.id == "c")
    screen.show(Self.details(["new"]))
    #expect(screen.model().selection == 0)
  }

  @Test func `In an empty timeline, keys make no request and select no moment`() {
    let screen = Screen(Self.details([]))
    #expect([Key.down, .end, .enter, .character("l")].map { screen.press($0) } == [nil, nil, nil, nil])
    #expect(screen.model().detail == nil)
  }

  // MARK: Requests

  @Test func `Keys make the requests that their hints name`() {
    let screen = Screen(Self.details(["0", "1"], liked: ["1"]))
    screen.timeline.hasMore = true
    let keys: [Key] = [
      .character("l"), .down, .enter, .character("o"), .character("o"), .character("r"), .character("m"),
      .character("q"), .character("x"), .escape,
    ]
    #expect(
      keys.map { screen.press($0) } == [
        .setLike(true, momentID: "0"), nil, .setLike(false, momentID: "1"), .setOnline(false), .setOnline(true),
        .reload, .loadMore, .quit, nil, nil,
      ])
  }

  @Test func `Unavailable actions are neither offered nor requested`() {
    let screen = Screen(Self.details(["0"]), canGoOffline: false)
    #expect([Key.character("o"), .character("m")].map { screen.press($0) } == [nil, nil])
    #expect(screen.model().keys.map(\.action) == ["quit", "move", "like", "reload"])
    #expect(screen.model().isOnline)
  }

  @Test func `A hint describes what the next press of its key does`() {
    let screen = Screen(Self.details(["0"], liked: ["0"]))
    screen.timeline.hasMore = true
    #expect(screen.model().keys.map(\.action) == ["quit", "move", "unlike", "go offline", "reload", "more"])
    screen.press(.character("o"))
    #expect(screen.model().keys.map(\.action)[3] == "go online")
    #expect(!screen.model().isOnline)
    #expect(screen.activity == "The network is down.")
  }

  // MARK: Likes

  @Test func `A like that the server does not have is shown as pending in the list, the detail and the header`() {
    let screen = Screen(Self.details(["0", "1"]))
    screen.timeline.rows[1].isPending = true
    screen.timeline.pendingCount = 1
    #expect(screen.model().rows.map(\.isPending) == [false, true])
    #expect(screen.model().detail?.row.isPending == false)
    screen.press(.down)
    #expect(screen.model().detail?.row.isPending == true)
    #expect(screen.model().pendingCount == 1)
  }

  @Test func `The activity line shows the result of a like`() {
    let screen = Screen(Self.details(["0"]))
    var activities: [String] = []
    for result in [.success(.confirmed), .success(.queued), .failure(.session(.timedOut))]
      as [Result<MomentLikeOutcome, MomentsRepoError>]
    {
      for isLiked in [true, false] {
        screen.likeEnded(isLiked, with: result)
        activities.append(screen.activity)
      }
    }
    #expect(
      activities == [
        "Liked it", "Unliked it", "Queued to be sent later: like it",
        "Queued to be sent later: unlike it", "Could not like it: the server cannot be reached.",
        "Could not unlike it: the server cannot be reached.",
      ])
  }

  @Test func `A cancelled like is not shown as an activity`() {
    let screen = Screen(Self.details(["0"]))
    screen.loadEnded(.newest)
    screen.likeEnded(true, with: .failure(.cancelled))
    #expect(screen.activity == "The timeline is up to date.")
  }
}
