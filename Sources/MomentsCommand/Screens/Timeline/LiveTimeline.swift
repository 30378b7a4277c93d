internal import DataStore
internal import Foundation
internal import Moments
internal import Multicast
internal import Observation
internal import Repository
internal import TerminalUI

/// A network that can be taken away and given back.
protocol NetworkSwitch: Sendable {
  /// Connects, or cuts off.
  ///
  /// - Throws: `StoreError`; then it is done, and the next start will not know.
  func setOnline(_ isOnline: Bool) async throws(StoreError)
}

/// The timeline on a terminal: the list with its view model, the selected moment and the counter of likes, each an
/// observer of one repository, and the keys.
///
/// A frame shows one state of the repository: none is drawn while the three observers differ.
@MainActor
@Observable
final class LiveTimeline: LiveScreen {
  /// How often the ages on the screen are brought up to date.
  nonisolated static let ageDuration = Duration.seconds(10)

  private let userID: String
  private let repo: any MomentsRepoType
  private let network: (any NetworkSwitch)?
  private let now: @Sendable () -> Date
  private let pause: @Sendable (Duration) async throws -> Void
  private let isOnline: CurrentValueRelay<Bool>

  private let model: MomentsTimelineViewModel
  private var state: LiveTimelineState
  /// Counts the updates of ages: not every age on the screen is one of a row.
  private var ageUpdates = 0

  /// Creates the live timeline of a user.
  ///
  /// - Parameters:
  ///   - userID: Whose timeline it is.
  ///   - repo: What is observed, and where likes go.
  ///   - network: What the key `o` switches; `nil` for a network that isn't this program's.
  ///   - isOnline: How the network is at the start.
  ///   - quit: What the key that leaves the screen does.
  ///   - now: The time ages count from.
  ///   - pause: Waits so long between the updates of ages.
  init(
    userID: String, repo: any MomentsRepoType, network: (any NetworkSwitch)? = nil, isOnline: Bool = true,
    quit: String = "quit", now: @escaping @Sendable () -> Date = { Date() },
    pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.userID = userID
    self.repo = repo
    self.network = network
    self.now = now
    self.pause = pause
    self.isOnline = CurrentValueRelay(isOnline)
    model = MomentsTimelineViewModel(userID: userID, momentsRepo: repo, now: now, locale: TimelineText.locale)
    state = LiveTimelineState(
      openedAt: now(), canGoOffline: network != nil, quit: KeyHint(key: "q", action: quit))
    state.isOnline = isOnline
  }

  func frame(size: TerminalSize) -> Frame? {
    _ = ageUpdates
    let timeline = timeline
    guard state.isConsistent(with: timeline) else { return nil }
    return TimelineScreen.frame(of: state.model(of: timeline, at: now()), size: size)
  }

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    switch state.press(key, in: timeline, pageHeight: ListSelection<String>.pageHeight(of: size)) {
    case .setLike(let isLiked, let momentID): return .perform { await self.setLike(isLiked, momentID: momentID) }
    case .setOnline(let isOnline):
      self.isOnline.send(isOnline)
      return nil
    case .reload: return .perform { await self.reload() }
    case .loadMore: return .perform { await self.loadMore() }
    case .quit: return .quit
    case nil: return nil
    }
  }

  /// Loads the timeline once, and observes it.
  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.model.run() }
      group.addTask { await self.observeInDetail() }
      group.addTask { await self.observeInCounter() }
      group.addTask { await self.updateAges() }
      group.addTask { await self.switchNetwork() }
      if isOnline.value { group.addTask { await self.reload() } }
    }
  }

  private var timeline: LiveTimelineState.Timeline {
    LiveTimelineState.Timeline(
      details: model.momentsDetails, rows: rows.map { TimelineScreen.Model.Row($0) }, savedAt: model.savedAt,
      isLoading: model.isLoading, problem: model.error?.description, hasMore: model.hasMoreItems,
      pendingCount: model.pendingMomentIDs.count)
  }

  private var rows: [MomentListItemViewModel] {
    model.listItems.compactMap { item in
      if case .moment(let row) = item { row } else { nil }
    }
  }

  // MARK: Requests

  private func setLike(_ isLiked: Bool, momentID: String) async {
    guard let row = rows.first(where: { $0.id == momentID }) else { return }
    let result: Result<MomentLikeOutcome, MomentsRepoError>
    do throws(MomentsRepoError) {
      result = .success(isLiked ? try await row.like(from: userID) : try await row.unlike(from: userID))
    } catch {
      result = .failure(error)
    }
    state.likeEnded(isLiked, TimelineText.heading(userName: row.userName, title: row.title), with: result)
  }

  private func reload() async {
    await model.reloadItems()
    loadEnded(.newest)
  }

  private func loadMore() async {
    await model.loadMoreItems()
    loadEnded(.older)
  }

  private func loadEnded(_ load: LiveTimelineState.Load) {
    if !Task.isCancelled { state.loadEnded(load, model.error) }
  }

  /// Brings the network to what was asked for last, one change after the other.
  ///
  /// Back online, the timeline is loaded, and with the reply the likes that wait are sent.
  private func switchNetwork() async {
    guard let network else { return }
    var wasOnline = isOnline.value
    await withDiscardingTaskGroup { group in
      for await isOnline in isOnline.stream {
        do throws(StoreError) {
          try await network.setOnline(isOnline)
        } catch {
          state.activity = "Not kept for the next start: \(error)"
        }
        if isOnline, !wasOnline { group.addTask { await self.reload() } }
        wasOnline = isOnline
      }
    }
  }

  // MARK: Observers

  private var loadStates: ObservedValues<MomentsLoadState> { repo.loadState(userID: userID).buffering(.latest) }

  private func observeInDetail() async {
    for await loadState in loadStates { state.showDetail(loadState.loadedValue, at: now()) }
  }

  private func observeInCounter() async {
    for await loadState in loadStates { state.counted = loadState.loadedValue?.value }
  }

  private func updateAges() async {
    do {
      while true {
        try await pause(Self.ageDuration)
        model.updateDates()
        ageUpdates &+= 1
      }
    } catch {
      // Nothing but a cancellation ends a pause early.
    }
  }
}
