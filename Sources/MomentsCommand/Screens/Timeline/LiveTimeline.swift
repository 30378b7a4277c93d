internal import DataStore
internal import Foundation
internal import Moments
internal import Multicast
internal import Observation
internal import Repository
internal import TerminalUI

/// A network that can be switched off and on.
protocol NetworkSwitch: Sendable {
  /// Connects or disconnects the network.
  ///
  /// - Throws: `StoreError` if the state could not be stored. The network is switched nevertheless, but the state is
  ///   not restored at the next start.
  func setOnline(_ isOnline: Bool) async throws(StoreError)
}

/// The live timeline: a list with its view model, the detail of the selected moment, and a counter of likes.
///
/// All three observe the same repository. A frame shows a single state of the timeline, because no frame is drawn while
/// they have different ones.
@MainActor
@Observable
final class LiveTimeline: LiveScreen {
  /// The interval at which the ages on the screen are updated.
  nonisolated static let ageUpdateInterval = Duration.seconds(10)

  private let userID: String
  private let repo: any MomentsRepoType
  private let network: (any NetworkSwitch)?
  private let now: @Sendable () -> Date
  private let pause: @Sendable (Duration) async throws -> Void
  /// Whether the network should be online; initially, whether it is online.
  private let requestedOnlineStates: CurrentValueRelay<Bool>

  private let viewModel: MomentsTimelineViewModel
  private var state: LiveTimelineState
  /// The number of age updates.
  ///
  /// ``frame(size:)`` observes it, because an update may change the age of the timeline but no row.
  private var ageUpdateCount = 0

  /// Creates the live timeline of a user.
  ///
  /// - Parameters:
  ///   - userID: The id of the user.
  ///   - repo: The repository to observe and to send likes to.
  ///   - network: The network that the key `o` switches; `nil` if this program can't switch the network.
  ///   - isOnline: Whether the network is online at the start.
  ///   - quitAction: The action in the hint for the key that leaves the screen.
  ///   - now: Returns the current time, from which ages are computed.
  ///   - pause: Suspends for a duration between two updates of the ages.
  init(
    userID: String, repo: any MomentsRepoType, network: (any NetworkSwitch)? = nil, isOnline: Bool = true,
    quitAction: String = "quit", now: @escaping @Sendable () -> Date = { Date() },
    pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.userID = userID
    self.repo = repo
    self.network = network
    self.now = now
    self.pause = pause
    requestedOnlineStates = CurrentValueRelay(isOnline)
    viewModel = MomentsTimelineViewModel(userID: userID, momentsRepo: repo, now: now, locale: TimelineText.locale)
    state = LiveTimelineState(
      openedAt: now(), canGoOffline: network != nil, quit: KeyHint(key: "q", action: quitAction))
    state.isOnline = isOnline
  }

  func frame(size: TerminalSize) -> Frame? {
    _ = ageUpdateCount
    let timeline = timeline
    guard state.isConsistent(with: timeline) else { return nil }
    return TimelineScreen.frame(of: state.model(of: timeline, at: now()), size: size)
  }

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    switch state.press(key, in: timeline, pageHeight: ListAndDetail.pageHeight(of: size)) {
    case .setLike(let isLiked, let momentID): return .perform { await self.setLike(isLiked, momentID: momentID) }
    case .setOnline(let isOnline):
      requestedOnlineStates.send(isOnline)
      return nil
    case .reload: return .perform { await self.reload() }
    case .loadMore: return .perform { await self.loadMore() }
    case .quit: return .quit
    case nil: return nil
    }
  }

  /// Observes the timeline, and loads it while the network is online: at the start, and whenever the network is back.
  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.viewModel.run() }
      group.addTask { await self.runDetailObserver() }
      group.addTask { await self.runCounterObserver() }
      group.addTask { await self.updateAges() }
      group.addTask { await self.switchNetwork() }
      if requestedOnlineStates.value { group.addTask { await self.reload() } }
    }
  }

  private var timeline: LiveTimelineState.Timeline {
    LiveTimelineState.Timeline(
      details: viewModel.momentsDetails, rows: rows.map { TimelineScreen.Model.Row($0) }, savedAt: viewModel.savedAt,
      isEmpty: viewModel.isEmpty, isLoading: viewModel.isLoading, problem: viewModel.error?.description,
      hasMore: viewModel.hasMoreItems, pendingCount: viewModel.pendingMomentIDs.count)
  }

  private var rows: [MomentListItemViewModel] {
    viewModel.listItems.compactMap { item in
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
    await viewModel.reloadItems()
    loadEnded(.newest)
  }

  private func loadMore() async {
    await viewModel.loadMoreItems()
    loadEnded(.older)
  }

  private func loadEnded(_ load: LiveTimelineState.Load) {
    if !Task.isCancelled { state.loadEnded(load, viewModel.error) }
  }

  /// Switches the network to the latest requested state, one change at a time.
  ///
  /// When the network is online again, the timeline is loaded. The server's reply makes the repository send the pending
  /// likes.
  private func switchNetwork() async {
    guard let network else { return }
    var wasOnline = requestedOnlineStates.value
    await withDiscardingTaskGroup { group in
      for await isOnline in requestedOnlineStates.stream {
        do throws(StoreError) {
          try await network.setOnline(isOnline)
        } catch {
          state.activity = "The state of the network could not be saved: \(error)"
        }
        if isOnline, !wasOnline { group.addTask { await self.reload() } }
        wasOnline = isOnline
      }
    }
  }

  // MARK: Observers

  private var loadStates: ObservedValues<MomentsLoadState> { repo.loadState(userID: userID).buffering(.latest) }

  private func runDetailObserver() async {
    for await loadState in loadStates { state.showDetail(loadState.loadedValue, at: now()) }
  }

  private func runCounterObserver() async {
    for await loadState in loadStates { state.counterTimeline = loadState.loadedValue?.value }
  }

  private func updateAges() async {
    do {
      while true {
        try await pause(Self.ageUpdateInterval)
        viewModel.updateDates()
        ageUpdateCount &+= 1
      }
    } catch {
      // Only cancellation ends a pause early.
    }
  }
}
