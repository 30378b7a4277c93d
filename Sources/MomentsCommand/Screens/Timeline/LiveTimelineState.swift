internal import Foundation
internal import GraphQLClient
internal import Moments
internal import TerminalUI

/// What the live timeline knows: what its observers saw, what runs, and where the user is.
///
/// Pure: keys, timelines and results go in; what is to be done and what is to be shown come out.
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

  /// What the list, the detail and the counter saw last.
  private(set) var list: MomentsDetails?
  var detail: MomentsDetails?
  var counted: MomentsDetails?

  /// When the timeline that this device had at the start was saved; nil when it had none.
  let storedAt: Date?
  /// The moments whose likes the server does not have yet.
  var pendingLikes: Set<String> = []
  /// When the server last sent the newest moments.
  var fetchedAt: Date?
  /// Why the last load failed.
  var problem: String?
  var isOnline = true
  var activity = "Opening the timeline…"
  /// Whether there is a network that can be taken away.
  let canGoOffline: Bool
  private var loads = 0
  private var selection = ListSelection<String>()

  init(storedAt: Date? = nil, canGoOffline: Bool = false) {
    self.storedAt = storedAt
    self.canGoOffline = canGoOffline
  }

  /// Whether all observers saw the same, so that a frame shows one state of the repository.
  var isConsistent: Bool { list == detail && list == counted }

  /// Whether there are older moments to ask for.
  private var canLoadMore: Bool { list?.pageInfo?.hasNextPage ?? false }

  private var moments: [MomentsDetails.Moment] { list?.moments ?? [] }

  private var selectedIndex: Int { selection.index(in: moments.map(\.id)) }

  private var selected: MomentsDetails.Moment? {
    moments.indices.contains(selectedIndex) ? moments[selectedIndex] : nil
  }

  // MARK: What happens

  mutating func showInList(_ details: MomentsDetails, at now: Date) {
    // A timeline that only a like was applied to is as old as before.
    if storedAt == nil, fetchedAt == nil {
      fetchedAt = now
    } else if list == nil, let storedAt {
      activity =
        "Showing what was stored \(TimelineText.age(of: storedAt, at: now)), "
        + (isOnline ? "asking for news." : "as the network is gone.")
    }
    list = details
    selection.settle(in: moments.map(\.id))
  }

  mutating func loadBegan() {
    loads += 1
    problem = nil
  }

  mutating func loadEnded(_ load: Load, _ error: MomentsRepoError?, at now: Date) {
    loads -= 1
    switch error {
    case nil:
      switch load {
      case .newest:
        fetchedAt = now
        activity = "The timeline is up to date."
      // It doesn't show what is newer than the timeline.
      case .older: activity = "Older moments are here."
      }
    case .cancelled: break
    case let error?:
      problem = error.description
      activity = "Not loaded: \(Self.describe(error))"
    }
  }

  mutating func likeEnded(_ isLiked: Bool, momentID: String, with result: Result<MomentLikeOutcome, MomentsRepoError>) {
    let moment = moments.first { $0.id == momentID }.map(TimelineText.heading(of:)) ?? "the moment"
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

  /// Moves, or says what the key asks for; nil for a key without a meaning.
  ///
  /// - Parameter pageHeight: How many rows a page key moves.
  mutating func press(_ key: Key, pageHeight: Int = 10) -> Request? {
    if selection.press(key, in: moments.map(\.id), pageHeight: pageHeight) { return nil }
    switch key {
    case .character("l"), .enter: return selected.map { .setLike(!($0.isLiked ?? false), momentID: $0.id) }
    case .character("o") where canGoOffline:
      isOnline.toggle()
      activity = isOnline ? "The network is back." : "The network is gone."
      return .setOnline(isOnline)
    case .character("r"): return .reload
    case .character("m") where canLoadMore: return .loadMore
    case .character("q"): return .quit
    default: return nil
    }
  }

  // MARK: What to show

  func model(at now: Date) -> TimelineScreen.Model {
    TimelineScreen.Model(
      userName: list?.userDetails.name,
      source: source(at: now),
      isLoading: loads > 0,
      isOnline: isOnline,
      problem: problem,
      likeCount: counted?.moments.reduce(0) { $0 + ($1.likes?.count ?? 0) } ?? 0,
      pendingCount: pendingLikes.count,
      rows: moments.map { row(of: $0, at: now) },
      selection: selectedIndex,
      detail: detail?.moments.first { $0.id == selected?.id }.map { moment in
        TimelineScreen.Model.Detail(row: row(of: moment, at: now), url: moment.url, photos: moment.photos)
      },
      activity: activity,
      keys: keys)
  }

  private func source(at now: Date) -> TimelineScreen.Model.Source? {
    guard list != nil else { return nil }
    if let fetchedAt { return .fetched(age: TimelineText.age(of: fetchedAt, at: now)) }
    return storedAt.map { .stored(age: TimelineText.age(of: $0, at: now)) }
  }

  private func row(of moment: MomentsDetails.Moment, at now: Date) -> TimelineScreen.Model.Row {
    TimelineScreen.Model.Row(
      id: moment.id, userName: moment.userDetails.name, title: moment.title,
      date: TimelineText.postDate(of: moment, at: now), isLiked: moment.isLiked ?? false,
      isPending: pendingLikes.contains(moment.id), likeCount: moment.likes?.count ?? 0)
  }

  private var keys: [KeyHint] {
    let isLiked = selected?.isLiked ?? false
    var keys = [
      KeyHint(key: "q", action: "quit"), .move, KeyHint(key: "l", action: isLiked ? "unlike" : "like"),
    ]
    if canGoOffline { keys.append(KeyHint(key: "o", action: isOnline ? "go offline" : "go online")) }
    keys.append(KeyHint(key: "r", action: "reload"))
    if canLoadMore { keys.append(KeyHint(key: "m", action: "more")) }
    return keys
  }
}
