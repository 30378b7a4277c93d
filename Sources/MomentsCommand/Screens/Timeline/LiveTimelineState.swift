internal import Foundation
internal import GraphQLClient
internal import Moments
internal import Repository
internal import TerminalUI

/// The part of the live timeline's state that isn't in its view model, such as the selection and the latest values of
/// the observers of the detail and of the like counter.
///
/// A pure state machine: its inputs are keys, timelines and results, and its outputs are requests and the contents of
/// the screen.
struct LiveTimelineState {
  /// An action that a key requests from the repository, the network or the ``ScreenSession``.
  enum Request: Hashable {
    case setLike(Bool, momentID: String)
    case setOnline(Bool)
    case reload
    case loadMore
    case quit
  }

  /// The part of a timeline that a load fetches.
  enum Load {
    /// The newest moments.
    case newest
    /// The page after the last moment.
    case older
  }

  /// The values that the view model shows.
  struct Timeline {
    var details: MomentsDetails?
    var rows: [TimelineScreen.Model.Row] = []
    var savedAt: Date?
    /// Whether the store was read, and has no timeline.
    var isEmpty = false
    var isLoading = false
    /// The reason why the last load failed.
    var problem: String?
    var hasMore = false
    /// The number of moments with a like, or the removal of a like, that the server doesn't have yet.
    var pendingCount = 0
  }

  /// The latest value of the detail's observer.
  private(set) var detailTimeline: MomentsDetails?
  /// The latest value of the like counter's observer.
  var counterTimeline: MomentsDetails?

  var isOnline = true
  var activity = "Opening the timeline…"
  /// The time when the screen was opened, which distinguishes the stored timeline from a fetched one.
  private let openedAt: Date
  /// Whether a key can switch the network off and on.
  private let canGoOffline: Bool
  /// The hint for the key that leaves the screen.
  private let quitHint: KeyHint
  private var hasShownTimeline = false
  private var selection = ListSelection<String>()

  init(openedAt: Date, canGoOffline: Bool = false, quit: KeyHint = KeyHint(key: "q", action: "quit")) {
    (self.openedAt, self.canGoOffline, self.quitHint) = (openedAt, canGoOffline, quit)
  }

  /// Whether the list, the detail and the counter have the same timeline, so that a frame shows a single state of it.
  func isConsistent(with timeline: Timeline) -> Bool {
    timeline.details == detailTimeline && timeline.details == counterTimeline
  }

  private func selectedIndex(in timeline: Timeline) -> Int { selection.index(in: timeline.rows.map(\.id)) }

  private func selectedRow(in timeline: Timeline) -> TimelineScreen.Model.Row? {
    let index = selectedIndex(in: timeline)
    return timeline.rows.indices.contains(index) ? timeline.rows[index] : nil
  }

  // MARK: Events

  /// Shows a timeline in the detail, or nothing if the timeline was removed or isn't known yet.
  ///
  /// If the first timeline was stored before the screen was opened, the activity announces it with its age.
  mutating func showDetail(_ loaded: LoadedValue<MomentsDetails>?, at now: Date) {
    detailTimeline = loaded?.value
    guard let loaded else { return }
    selection.anchor(in: loaded.value.moments.map(\.id))
    if !hasShownTimeline, loaded.savedAt < openedAt {
      activity =
        "Showing the timeline stored \(TimelineText.age(of: loaded.savedAt, at: now)); "
        + (isOnline ? "checking for updates." : "the network is down.")
    }
    hasShownTimeline = true
  }

  mutating func loadEnded(_ load: Load, _ error: MomentsRepoError?) {
    activity =
      switch (error, load) {
      case (let error?, _): "Loading failed: \(Self.describe(error))"
      case (nil, .newest): "The timeline is up to date."
      // Not "up to date", because the server may have newer moments.
      case (nil, .older): "Loaded older moments."
      }
  }

  mutating func likeEnded(
    _ isLiked: Bool, _ heading: String, with result: Result<MomentLikeOutcome, MomentsRepoError>
  ) {
    switch result {
    case .success(.confirmed): activity = isLiked ? "Liked \(heading)" : "Unliked \(heading)"
    case .success(.queued): activity = "Queued to be sent later: \(isLiked ? "like" : "unlike") \(heading)"
    case .failure(.cancelled): break
    case .failure(let error):
      activity = "Could not \(isLiked ? "like" : "unlike") \(heading): \(Self.describe(error))"
    }
  }

  /// Returns the reason for a failure, in a few words if the failure is a common one.
  private static func describe(_ error: MomentsRepoError) -> String {
    switch error {
    case .session(.transport), .session(.timedOut): "the server cannot be reached."
    default: error.description
    }
  }

  // MARK: Keys

  /// Handles a key: moves the selection, or returns the request of the key; `nil` if there is no request.
  ///
  /// The key that switches the network also changes ``isOnline`` and ``activity``.
  ///
  /// - Parameter pageHeight: The number of rows that a page key moves by.
  mutating func press(_ key: Key, in timeline: Timeline, pageHeight: Int = 10) -> Request? {
    if selection.press(key, in: timeline.rows.map(\.id), pageHeight: pageHeight) { return nil }
    switch key {
    case .character("l"), .enter: return selectedRow(in: timeline).map { .setLike(!$0.isLiked, momentID: $0.id) }
    case .character("o") where canGoOffline:
      isOnline.toggle()
      activity = isOnline ? "The network is back." : "The network is down."
      return .setOnline(isOnline)
    case .character("r"): return .reload
    case .character("m") where timeline.hasMore: return .loadMore
    case .character("q"): return .quit
    default: return nil
    }
  }

  // MARK: Contents

  func model(of timeline: Timeline, at now: Date) -> TimelineScreen.Model {
    TimelineScreen.Model(
      userName: timeline.details?.userDetails.name,
      isRead: timeline.isEmpty || timeline.details != nil,
      source: source(of: timeline, at: now),
      isLoading: timeline.isLoading,
      isOnline: isOnline,
      problem: timeline.problem,
      likeCount: counterTimeline?.moments.reduce(0) { $0 + ($1.likes?.count ?? 0) } ?? 0,
      pendingCount: timeline.pendingCount,
      rows: timeline.rows,
      selection: selectedIndex(in: timeline),
      detail: selectedRow(in: timeline).flatMap { detail(of: $0) },
      activity: activity,
      keys: keys(in: timeline))
  }

  private func source(of timeline: Timeline, at now: Date) -> TimelineScreen.Model.Source? {
    timeline.savedAt.map { savedAt in
      let age = TimelineText.age(of: savedAt, at: now)
      return savedAt < openedAt ? .stored(age: age) : .fetched(age: age)
    }
  }

  /// Returns the detail of a row's moment, from the latest value of the detail's observer.
  private func detail(of row: TimelineScreen.Model.Row) -> TimelineScreen.Model.Detail? {
    detailTimeline?.moments.first { $0.id == row.id }.map { moment in
      var row = row
      (row.isLiked, row.likeCount) = (moment.isLiked ?? false, moment.likes?.count ?? 0)
      return TimelineScreen.Model.Detail(row: row, url: moment.url, photos: moment.photos)
    }
  }

  private func keys(in timeline: Timeline) -> [KeyHint] {
    let isLiked = selectedRow(in: timeline)?.isLiked ?? false
    var keys = [quitHint, .move, KeyHint(key: "l", action: isLiked ? "unlike" : "like")]
    if canGoOffline { keys.append(KeyHint(key: "o", action: isOnline ? "go offline" : "go online")) }
    keys.append(KeyHint(key: "r", action: "reload"))
    if timeline.hasMore { keys.append(KeyHint(key: "m", action: "more")) }
    return keys
  }
}
