import DataStore
import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TerminalUI
import TestSupport
import Testing

@testable import MomentsCommand

@MainActor @Suite(.timeLimit(.minutes(15))) struct LiveTimelineTests {
  nonisolated private static let noon = Date(timeIntervalSince1970: 1_605_528_000)

  /// A terminal of 24 lines: the header (0), the body (2 to 20), the latest activity (22) and the key hints (23).
  private let terminal = FakeTerminal()
  private let backend = DemonstrationServer()
  private let store = PersistentDataStore(InMemoryStore(now: { noon }))
  /// A store whose first save is dated five minutes before noon, and whose later saves are dated noon.
  private let backdatingStore: PersistentDataStore<InMemoryStore>

  init() {
    let saveCount = Lock(0)
    backdatingStore = PersistentDataStore(
      InMemoryStore(now: {
        saveCount.withLock { saveCount in
          defer { saveCount += 1 }
          return saveCount == 0 ? Self.noon.addingTimeInterval(-300) : Self.noon
        }
      }))
  }

  private func makeScreenSession(
    repo: (any MomentsRepoType)? = nil, store: PersistentDataStore<InMemoryStore>? = nil, isOnline: Bool = true,
    getMomentsSession: (any GetMomentsByUserIDSessionType)? = nil,
    now: @escaping @Sendable () -> Date = { noon },
    pause: @escaping @Sendable (Duration) async throws -> Void = { _ in
      // Longer than a test, so the ages are never updated.
      try await Task.sleep(for: .seconds(1_000))
    }
  ) -> ScreenSession {
    let timeline = LiveTimeline(
      userID: "1",
      repo: repo
        ?? MomentsRepo(
          persistentDataStore: store ?? self.store, getMomentsByUserIDSession: getMomentsSession ?? backend,
          updateMomentLikeSession: backend),
      network: backend, isOnline: isOnline, now: now, pause: pause)
    return ScreenSession(of: timeline, on: terminal, pause: { _ in })
  }

  @Test func `The timeline takes over the terminal, and restores it when the user quits`() async {
    let screenSession = makeScreenSession()
    async let ending = screenSession.run()
    let lines = await terminal.lines { $0[22].contains("up to date") }
    #expect(lines[0].hasPrefix(" Mei Zhou  3 moments · 4 likes"))
    #expect(lines[0].hasSuffix("fetched now"))
    terminal.type("q")
    #expect(await ending == .quit)
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `A like changes list, detail and counter in one frame`() async {
    let screenSession = makeScreenSession()
    async let ending = screenSession.run()
    _ = await terminal.lines { $0[22].contains("up to date") }
    terminal.type("jl")
    _ = await terminal.lines { $0[22].hasPrefix(" Liked 李晓雯") }
    terminal.type("q")
    _ = await ending
    let framesWithSecondRowSelected = terminal.allFrames.filter { $0[3].hasPrefix("▸") }
    // The likes that the list, the detail and the counter show, without repetitions.
    var shownLikes: [[String]] = []
    for lines in framesWithSecondRowSelected {
      let likes = [
        String(lines[3].prefix(3).suffix(1)), String(lines[5].suffix(9)).trimmingCharacters(in: .whitespaces),
        String(lines[0].split(separator: " · ")[1].prefix(7)),
      ]
      if shownLikes.last != likes { shownLikes.append(likes) }
    }
    #expect(shownLikes == [["·", "· 1 like", "4 likes"], ["♥", "♥ 2 likes", "5 likes"]])
  }

  @Test func `No frame is drawn while the observers have different values`() async {
    let repo = SplitRepo()
    let screenSession = makeScreenSession(repo: repo)
    async let ending = screenSession.run()
    for relay in repo.relays { relay.send(.loaded(.fixture(name: "Before"))) }
    _ = await terminal.lines { $0[0].contains("Before") }
    for relay in repo.relays {
      relay.send(.loaded(.fixture(name: "After", likedMomentIDs: ["0"])))
      // Each key requests a frame.
      terminal.type("j")
      // Enough time for every job of the timeline that could draw a wrong frame.
      for _ in 0..<1_000 { await Task.yield() }
    }
    _ = await terminal.lines { $0[0].contains("After") }
    terminal.type("q")
    _ = await ending
    // The name in the header is from the list's observer, and the like in the detail from the detail's observer. Only
    // frames whose list shows a moment are checked.
    let mixedFrames = terminal.allFrames.filter { lines in
      lines[0].contains("After") != lines.contains { $0.contains("│ ♥ 0 likes") } && lines[2].hasPrefix("▸")
    }
    #expect(mixedFrames == [])
  }

  @Test func `The stored timeline is shown with its age before the server answers`() async throws {
    let details = try await backend.getMoments(userID: "1")
    try await backdatingStore.save(momentsDetails: details, userID: "1")
    let gate = Gate()
    let backend = backend
    let screenSession = makeScreenSession(
      store: backdatingStore,
      getMomentsSession: GetMomentsByUserIDSessionStub { userID throws(APISessionError) in
        await gate.pass()
        return try await backend.getMoments(userID: userID)
      })
    async let ending = screenSession.run()
    let before = await terminal.lines { $0[0].hasSuffix("stored 5 minutes ago · loading…") }
    #expect(before[0].hasPrefix(" Mei Zhou  3 moments · 4 likes"))
    #expect(before[22] == " Showing the timeline stored 5 minutes ago; checking for updates.")
    gate.open()
    let after = await terminal.lines { $0[22].contains("up to date") }
    #expect(after[0].hasSuffix("fetched now"))
    terminal.type("q")
    _ = await ending
  }

  @Test func `The network is switched off and on`() async {
    let screenSession = makeScreenSession()
    async let ending = screenSession.run()
    _ = await terminal.lines { $0[22].contains("up to date") }
    terminal.type("o")
    let offline = await terminal.lines { $0[0].hasSuffix("offline") }
    #expect(offline[23].contains("o go online"))
    // The key only requests that the network goes offline. Another task switches it.
    while await backend.isOnline { await Task.yield() }
    terminal.type("r")
    let failed = await terminal.lines { $0[22].hasPrefix(" Loading failed") }
    #expect(failed[0].hasPrefix(" Mei Zhou"))
    terminal.type("o")
    // When the network is back, the timeline is loaded without another key press. The replay begins with older frames,
    // so those before the failure are skipped.
    var hasShownFailure = false
    for await frame in terminal.frames.stream where frame.size.rows > 0 {
      if frame.lines[22].hasPrefix(" Loading failed") { hasShownFailure = true }
      if hasShownFailure, frame.lines[22].contains("up to date") { break }
    }
    #expect(await backend.isOnline)
    terminal.type("q")
    _ = await ending
  }

  @Test func `Without a network at the start, the stored timeline is shown, and reloaded when the network is back`()
    async throws
  {
    try await backdatingStore.save(momentsDetails: backend.getMoments(userID: "1"), userID: "1")
    await backend.setOnline(false)
    let screenSession = makeScreenSession(store: backdatingStore, isOnline: false)
    async let ending = screenSession.run()
    let offline = await terminal.lines { $0[22].contains("the network is down") }
    #expect(offline[0].hasSuffix("stored 5 minutes ago · offline"))
    #expect(offline[23].contains("o go online"))
    terminal.type("o")
    let online = await terminal.lines { $0[22].contains("up to date") }
    #expect(online[0].hasSuffix("fetched now"))
    terminal.type("q")
    #expect(await ending == .quit)
  }

  @Test func `A like is shown as pending until the server answers`() async {
    let repo = SplitRepo()
    let screenSession = makeScreenSession(repo: repo)
    async let ending = screenSession.run()
    for relay in repo.relays { relay.send(.loaded(.fixture())) }
    _ = await terminal.lines { $0[2].hasPrefix("▸ ·  Taylor") }
    terminal.type("l")
    let pending = await terminal.lines { $0[2].hasPrefix("▸ ·… Taylor") }
    #expect(pending[0].hasSuffix("1 pending"))
    #expect(pending.contains { $0.contains("│ … waiting for the server") })
    repo.likeGate.open()
    // The pending likes and the activity arrive independently, in either order.
    let liked = await terminal.lines { $0[22].hasPrefix(" Liked") && !$0[0].contains("pending") }
    // `SplitRepo` doesn't change the timeline when a like is confirmed, so the row still shows no like.
    #expect(liked[2].hasPrefix("▸ ·  Taylor"))
    terminal.type("q")
    _ = await ending
  }

  @Test func `Ages are updated while nothing else changes`() async {
    let gate = Gate()
    let minutesAfterNoon = Lock(0)
    let screenSession = makeScreenSession(
      now: { Self.noon.addingTimeInterval(Double(minutesAfterNoon.withLock { $0 }) * 60) },
      pause: { duration in
        #expect(duration == LiveTimeline.ageUpdateInterval)
        await gate.pass()
        // The first pause ends when the gate is open, and the second one outlasts the test.
        try await Task.sleep(for: .seconds(minutesAfterNoon.withLock { $0 } == 0 ? 0 : 1_000))
        minutesAfterNoon.withLock { $0 = 2 }
      })
    async let ending = screenSession.run()
    _ = await terminal.lines { $0[0].hasSuffix("fetched now") }
    gate.open()
    _ = await terminal.lines { $0[0].hasSuffix("fetched 2 minutes ago") }
    terminal.type("q")
    _ = await ending
  }
}

/// A repository whose three observers each have their own relay, and whose likes wait for a gate.
private final class SplitRepo: MomentsRepoType {
  let relays = (0..<3).map { _ in CurrentValueRelay(MomentsLoadState.idle) }
  let likeGate = Gate()
  private let pendingLikesRelay = CurrentValueRelay<[String: Bool]>([:])
  private let observerCount = Lock(0)

  var momentsDetails: ObservedValues<MomentsDetails> { preconditionFailure("The screen observes only load states.") }

  func momentsDetails(userID: String) -> ObservedValues<MomentsDetails> { momentsDetails }

  func loadState(userID: String) -> ObservedValues<MomentsLoadState> {
    observerCount.withLock { count in
      defer { count += 1 }
      return ObservedValues(relays[count % 3].stream)
    }
  }

  func getMoments(userID: String) async throws(MomentsRepoError) {}

  func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome {
    pendingLikesRelay.send([momentID: isLiked])
    await likeGate.pass()
    pendingLikesRelay.send([:])
    return .confirmed
  }

  func pendingLikes(userID: String) -> ObservedValues<[String: Bool]> { ObservedValues(pendingLikesRelay.stream) }

  func refreshMoments(userID: String) async throws(MomentsRepoError) {}

  func reloadMoments(userID: String) async throws(MomentsRepoError) {}

  func loadMoreMoments(userID: String) async throws(MomentsRepoError) {}
}

extension MomentsLoadState {
  fileprivate static func loaded(_ details: MomentsDetails) -> MomentsLoadState {
    .loaded(LoadedValue(details, savedAt: Date(timeIntervalSince1970: 0)))
  }
}
