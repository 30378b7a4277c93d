internal import Foundation
internal import GraphQLClient
internal import Moments
internal import Repository
internal import TerminalUI

/// What the live timeline knows beside its view model: what its other observers saw, and where the user is.
///
/// A pure state machine: keys, timelines and results go in; what is to be done and what is to be shown come out.
struct LiveTimelineState {
  /// What a key asks for beyond the screen.
  enum Request: Hashable {
    case setLike(Bool, momentID: String)
    case setOnline(Bool)
    case reload
    case loadMore
    case quit
  }

  /// What a load brings.
  enum Load {
    /// The newest moments.
    case newest
    /// The page behind the last moment.
    case older
  }

  /// What the view model shows.
  struct Timeline {
    var details: MomentsDetails?
    var rows: [TimelineScreen.Model.Row] = []
    var savedAt: Date?
    var isLoading = false
    /// Why the last load failed.
    var problem: String?
    var hasMore = false
    /// How many likes the server doesn't have yet.
    var pendingCount = 0
  }

  /// What the detail and the counter saw last.
  private(set) var detail: MomentsDetails?
  var counted: MomentsDetails?

  var isOnline = true
  var activity = "Opening the timeline…"
  /// When the screen was opened: a timeline that was saved before is the stored one.
  private let openedAt: Date
  /// Whether there is a network that can be taken away.
  private let canGoOffline: Bool
  /// What leaves the screen.
  private let quit: KeyHint
  private var hasOpened = false
  private var selection = ListSelection<String>()

  init(openedAt: Date, canGoOffline: Bool = false, quit: KeyHint = KeyHint(key: "q", action: "quit")) {
    (self.openedAt, self.canGoOffline, self.quit) = (openedAt, canGoOffline, quit)
  }

  /// Whether all observers saw the same, so that a frame shows one state of the repository.
  func isConsistent(with timeline: Timeline) -> Bool { timeline.details == detail && timeline.details == counted }

  private func selectedIndex(in timeline: Timeline) -> Int { selection.index(in: timeline.rows.map(\.id)) }

  private func selected(in timeline: Timeline) -> TimelineScreen.Model.Row? {
    let index = selectedIndex(in: timeline)
    return timeline.rows.indices.contains(index) ? timeline.rows[index] : nil
  }

  // MARK: What happens

  /// Shows a timeline in the detail; `nil` if it was removed, or isn't known yet.
  mutating func showDetail(_ loaded: LoadedValue<MomentsDetails>?, at now: Date) {
    detail = loaded?.value
    guard let loaded else { return }
    selection.anchor(in: loaded.value.moments.map(\.id))
    if !hasOpened, loaded.savedAt < openedAt {
      activity =
        "Showing what was stored \(TimelineText.age(of: loaded.savedAt, at: now)), "
        + (isOnline ? "asking for news." : "as the network is gone.")
    }
    hasOpened = true
  }

  mutating func loadEnded(_ load: Load, _ error: MomentsRepoError?) {
    activity =
      switch (error, load) {
      case (let error?, _): "Not loaded: \(Self.describe(error))"
      case (nil, .newest): "The timeline is up to date."
      // It doesn't show what is newer than the timeline.
      case (nil, .older): "Older moments are here."
      }
  }

  mutating func likeEnded(_ isLiked: Bool, _ moment: String, with result: Result<MomentLikeOutcome, MomentsRepoError>) {
    switch result {
    case .success(.confirmed): activity = isLiked ? "Liked \(moment)" : "No longer liked: \(moment)"
    case .success(.queued): activity = "Kept until the network is back: \(isLiked ? "like" : "unlike") \(moment)"
    case .failure(.cancelled): break
    case .failure(let error):
      activity = "\(isLiked ? "Not liked" : "Still liked"), \(moment): \(Self.describe(error))"
    }
  }

  /// Why something failed, in a few words where it is a thing of every day.
  private static func describe(_ error: MomentsRepoError) -> String {
    switch error {
    case .session(.transport), .session(.timedOut): "the server cannot be reached."
    default: error.description
    }
  }

  // MARK: Keys

  /// Moves, or says what the key asks for; `nil` for a key without a meaning.
  ///
  /// - Parameter pageHeight: How many rows a page key moves.
  mutating func press(_ key: Key, in timeline: Timeline, pageHeight: Int = 10) -> Request? {
    if selection.press(key, in: timeline.rows.map(\.id), pageHeight: pageHeight) { return nil }
    switch key {
    case .character("l"), .enter: return selected(in: timeline).map { .setLike(!$0.isLiked, momentID: $0.id) }
    case .character("o") where canGoOffline:
      isOnline.toggle()
      activity = isOnline ? "The network is back." : "The network is gone."
      return .setOnline(isOnline)
    case .character("r"): return .reload
    case .character("m") where timeline.hasMore: return .loadMore
    case .character("q"): return .quit
    default: return nil
    }
  }

  // MARK: What to show

  func model(of timeline: Timeline, at now: Date) -> TimelineScreen.Model {
    TimelineScreen.Model(
      userName: timeline.details?.userDetails.name,
      source: source(of: timeline, at: now),
      isLoading: timeline.isLoading,
      isOnline: isOnline,
      problem: timeline.problem,
      likeCount: counted?.moments.reduce(0) { $0 + ($1.likes?.count ?? 0) } ?? 0,
      pendingCount: timeline.pendingCount,
      rows: timeline.rows,
      selection: selectedIndex(in: timeline),
      detail: selected(in: timeline).flatMap { detail(of: $0) },
      activity: activity,
      keys: keys(in: timeline))
  }

  private func source(of timeline: Timeline, at now: Date) -> TimelineScreen.Model.Source? {
    timeline.savedAt.map { savedAt in
      let age = TimelineText.age(of: savedAt, at: now)
      return savedAt < openedAt ? .stored(age: age) : .fetched(age: age)
    }
  }

  /// The moment of a row, as the detail saw it last.
  private func detail(of row: TimelineScreen.Model.Row) -> TimelineScreen.Model.Detail? {
    detail?.moments.first { $0.id == row.id }.map { moment in
      var row = row
      (row.isLiked, row.likeCount) = (moment.isLiked ?? false, moment.likes?.count ?? 0)
      return TimelineScreen.Model.Detail(row: row, url: moment.url, photos: moment.photos)
    }
  }

  private func keys(in timeline: Timeline) -> [KeyHint] {
    let isLiked = selected(in: timeline)?.isLiked ?? false
    var keys = [quit, .move, KeyHint(key: "l", action: isLiked ? "unlike" : "like")]
    if canGoOffline { keys.append(KeyHint(key: "o", action: isOnline ? "go offline" : "go online")) }
    keys.append(KeyHint(key: "r", action: "reload"))
    if timeline.hasMore { keys.append(KeyHint(key: "m", action: "more")) }
    return keys
  }
}
