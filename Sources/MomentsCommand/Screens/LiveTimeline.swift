internal import DataStore
internal import Foundation
internal import Moments
internal import Multicast

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
/// - **Frames**: A frame shows one state of the repository: none is drawn while the three observers differ. Only what
///   changed since the last frame makes one. While a frame is written, or for a moment after it, changes gather.
/// - **Cancellation**: Cancelling ``run()`` ends it as a quit would.
@MainActor
final class LiveTimeline {
  /// How it came to an end.
  enum Ending: Sendable, Hashable {
    case quit
    /// By Ctrl-C.
    case interrupted
    /// The terminal has gone.
    case hungUp
    case failed(TerminalError)
  }

  /// The least time from one frame to the next: one sixtieth of a second.
  nonisolated static let frameDuration = Duration.nanoseconds(16_666_667)
  /// How often the ages on the screen are brought up to date.
  nonisolated static let ageDuration = Duration.seconds(10)

  private enum Command: Sendable {
    case perform(LiveTimelineState.Request)
    case end(Ending)
  }

  private let userID: String
  private let repo: any MomentsRepoType
  private let terminal: any TerminalType
  private let network: (any NetworkSwitch)?
  private let loadMore: (@Sendable () async throws(MomentsRepoError) -> Void)?
  private let now: @Sendable () -> Date
  private let pause: @Sendable (Duration) async throws -> Void

  private var state: LiveTimelineState
  private var size = TimelineScreen.minimumSize
  private let commands = MulticastRelay<Command>(buffering: .unbounded)
  /// Counts what may be seen on the screen.
  private let changes = CurrentValueRelay(0)
  private let isOnline: CurrentValueRelay<Bool>

  /// Creates the live timeline of a user.
  ///
  /// - Parameters:
  ///   - userID: Whose timeline it is.
  ///   - repo: What is observed, and where likes go.
  ///   - terminal: Where it is shown; taken over by ``run()`` only.
  ///   - storedAt: When the timeline the device has was saved; its age is shown until there is a newer one.
  ///   - network: What the key `o` switches; nil for a network that is not this program's.
  ///   - isOnline: How the network is at the start.
  ///   - loadMore: What the key `m` does; nil where there is never more.
  ///   - now: The time ages count from.
  ///   - pause: Waits so long between frames, and between the updates of ages.
  init(
    userID: String, repo: any MomentsRepoType, terminal: any TerminalType,
    storedAt: Date? = nil, network: (any NetworkSwitch)? = nil, isOnline: Bool = true,
    loadMore: (@Sendable () async throws(MomentsRepoError) -> Void)? = nil,
    now: @escaping @Sendable () -> Date = { Date() },
    pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.userID = userID
    self.repo = repo
    self.terminal = terminal
    self.network = network
    self.loadMore = loadMore
    self.now = now
    self.pause = pause
    self.isOnline = CurrentValueRelay(isOnline)
    state = LiveTimelineState(
      storedAt: storedAt, canGoOffline: network != nil, canLoadMore: loadMore != nil)
    state.isOnline = isOnline
  }

  /// Takes the terminal over, shows the timeline, loads it once, and returns when the user has left.
  func run() async -> Ending {
    let events = terminal.events.subscribe()
    let commands = commands.stream.subscribe()
    do throws(TerminalError) {
      resize(to: try await terminal.open())
    } catch {
      return .failed(error)
    }
    let ending = await withDiscardingTaskGroup { group in
      group.addTask { await self.follow(events) }
      group.addTask { await self.followInList() }
      group.addTask { await self.followInDetail() }
      group.addTask { await self.followInCounter() }
      group.addTask { await self.followPendingLikes() }
      group.addTask { await self.draw() }
      group.addTask { await self.updateAges() }
      group.addTask { await self.switchNetwork() }
      if isOnline.value { group.addTask { await self.perform(.reload) } }
      defer { group.cancelAll() }
      for await command in commands {
        switch command {
        case .perform(let request): group.addTask { await self.perform(request) }
        case .end(let ending): return ending
        }
      }
      return .quit
    }
    await terminal.close()
    return ending
  }

  // MARK: Input

  private func follow(_ events: MulticastSubscription<TerminalEvent, Never>) async {
    var decoder = KeyDecoder()
    for await event in events {
      switch event {
      case .input(let bytes): for key in decoder.decode(bytes) { press(key) }
      case .resized(let size): resize(to: size)
      case .ended:
        for key in decoder.finish() { press(key) }
        commands.send(.end(.hungUp))
      }
    }
  }

  private func press(_ key: Key) {
    let request = state.press(key)
    changed()
    switch request {
    case .quit: commands.send(.end(.quit))
    case .interrupt: commands.send(.end(.interrupted))
    case .setOnline(let isOnline): self.isOnline.send(isOnline)
    case let request?: commands.send(.perform(request))
    case nil: break
    }
  }

  private func resize(to size: TerminalSize) {
    self.size = size
    state.pageHeight = max(1, size.rows - 6)
    changed()
  }

  private func perform(_ request: LiveTimelineState.Request) async {
    switch request {
    case .setLike(let isLiked, let momentID): await setLike(isLiked, momentID: momentID)
    case .reload:
      await load { () async throws(MomentsRepoError) in try await self.repo.getMoments(userID: self.userID) }
    case .loadMore: if let loadMore { await load(loadMore) }
    case .suspend: await terminal.suspend()
    // These need no time.
    case .setOnline, .quit, .interrupt: break
    }
  }

  private func setLike(_ isLiked: Bool, momentID: String) async {
    let result: Result<MomentLikeOutcome, MomentsRepoError>
    do throws(MomentsRepoError) {
      result = .success(try await repo.updateLike(isLiked: isLiked, momentID: momentID, fromUserID: userID))
    } catch {
      result = .failure(error)
    }
    state.likeEnded(isLiked, momentID: momentID, with: result)
    changed()
  }

  private func load(_ request: () async throws(MomentsRepoError) -> Void) async {
    state.loadBegan()
    changed()
    var failure: MomentsRepoError?
    do throws(MomentsRepoError) {
      try await request()
    } catch {
      failure = error
    }
    state.loadEnded(failure, at: now())
    changed()
  }

  /// Brings the network to what was asked for last, one change after the other.
  ///
  /// Back online, the timeline is loaded, and with the reply the likes that wait are sent.
  private func switchNetwork() async {
    guard let network else { return }
    var wasOnline = isOnline.value
    for await isOnline in isOnline.stream {
      do throws(StoreError) {
        try await network.setOnline(isOnline)
      } catch {
        state.activity = "Not kept for the next start: \(error)"
        changed()
      }
      if isOnline, !wasOnline { commands.send(.perform(.reload)) }
      wasOnline = isOnline
    }
  }

  // MARK: Observers

  private var timelines: MulticastStream<MomentsDetails, Never> {
    repo.momentsDetails(userID: userID).buffering(.latest)
  }

  private func followInList() async {
    for await details in timelines {
      state.showInList(details, at: now())
      changed()
    }
  }

  private func followInDetail() async {
    for await details in timelines {
      state.detail = details
      changed()
    }
  }

  private func followInCounter() async {
    for await details in timelines {
      state.counted = details
      changed()
    }
  }

  private func followPendingLikes() async {
    for await pending in repo.pendingLikes(userID: userID) {
      state.pendingLikes = Set(pending.keys)
      changed()
    }
  }

  // MARK: Frames

  private func changed() {
    changes.update { $0 &+= 1 }
  }

  private func draw() async {
    for await _ in changes.stream {
      guard state.isConsistent else { continue }
      do throws(TerminalError) {
        try await terminal.show(TimelineScreen.frame(of: state.model(at: now()), size: size))
      } catch {
        commands.send(.end(.failed(error)))
        return
      }
      if await isCancelled(during: Self.frameDuration) { return }
    }
  }

  private func updateAges() async {
    while !(await isCancelled(during: Self.ageDuration)) { changed() }
  }

  private func isCancelled(during duration: Duration) async -> Bool {
    do {
      try await pause(duration)
      return false
    } catch {
      // Nothing but a cancellation ends a pause early.
      return true
    }
  }
}
