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

/// The timeline on a terminal: the list, the selected moment and the counter of likes, each an observer of one
/// repository, and the keys.
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

  private var state: LiveTimelineState
  /// Counts how often the ages were to be brought up to date.
  private var ageUpdates = 0

  /// Creates the live timeline of a user.
  ///
  /// - Parameters:
  ///   - userID: Whose timeline it is.
  ///   - repo: What is observed, and where likes go.
  ///   - storedAt: When the timeline the device has was saved; its age is shown until there is a newer one.
  ///   - network: What the key `o` switches; nil for a network that is not this program's.
  ///   - isOnline: How the network is at the start.
  ///   - now: The time ages count from.
  ///   - pause: Waits so long between the updates of ages.
  init(
    userID: String, repo: any MomentsRepoType, storedAt: Date? = nil, network: (any NetworkSwitch)? = nil,
    isOnline: Bool = true, now: @escaping @Sendable () -> Date = { Date() },
    pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.userID = userID
    self.repo = repo
    self.network = network
    self.now = now
    self.pause = pause
    self.isOnline = CurrentValueRelay(isOnline)
    state = LiveTimelineState(storedAt: storedAt, canGoOffline: network != nil)
    state.isOnline = isOnline
  }

  func frame(size: TerminalSize) -> Frame? {
    _ = ageUpdates
    guard state.isConsistent else { return nil }
    return TimelineScreen.frame(of: state.model(at: now()), size: size)
  }

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    switch state.press(key, pageHeight: ListSelection<String>.pageHeight(of: size)) {
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

  /// Loads the timeline once, and follows it.
  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.followInList() }
      group.addTask { await self.followInDetail() }
      group.addTask { await self.followInCounter() }
      group.addTask { await self.followPendingLikes() }
      group.addTask { await self.updateAges() }
      group.addTask { await self.switchNetwork() }
      if isOnline.value { group.addTask { await self.reload() } }
    }
  }

  // MARK: Requests

  private func setLike(_ isLiked: Bool, momentID: String) async {
    let result: Result<MomentLikeOutcome, MomentsRepoError>
    do throws(MomentsRepoError) {
      result = .success(try await repo.updateLike(isLiked: isLiked, momentID: momentID, fromUserID: userID))
    } catch {
      result = .failure(error)
    }
    state.likeEnded(isLiked, momentID: momentID, with: result)
  }

  private func reload() async {
    await load(.newest) { () async throws(MomentsRepoError) in try await self.repo.reloadMoments(userID: self.userID) }
  }

  private func loadMore() async {
    await load(.older) { () async throws(MomentsRepoError) in
      try await self.repo.loadMoreMoments(userID: self.userID)
    }
  }

  private func load(_ load: LiveTimelineState.Load, _ request: () async throws(MomentsRepoError) -> Void) async {
    state.loadBegan()
    var failure: MomentsRepoError?
    do throws(MomentsRepoError) {
      try await request()
    } catch {
      failure = error
    }
    state.loadEnded(load, failure, at: now())
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

  private var timelines: ObservedValues<MomentsDetails> {
    repo.momentsDetails(userID: userID).buffering(.latest)
  }

  private func followInList() async {
    for await details in timelines { state.showInList(details, at: now()) }
  }

  private func followInDetail() async {
    for await details in timelines { state.detail = details }
  }

  private func followInCounter() async {
    for await details in timelines { state.counted = details }
  }

  private func followPendingLikes() async {
    for await pending in repo.pendingLikes(userID: userID) { state.pendingLikes = Set(pending.keys) }
  }

  private func updateAges() async {
    do {
      while true {
        try await pause(Self.ageDuration)
        ageUpdates &+= 1
      }
    } catch {
      // Nothing but a cancellation ends a pause early.
    }
  }
}
