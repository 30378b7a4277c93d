import DataStore
import Foundation
import Moments
import MomentsTesting
import Multicast
import Repository
import Synchronization
import Testing

@testable import MomentsCommand

@MainActor @Suite(.timeLimit(.minutes(5))) struct LiveTimelineTests {
  nonisolated private static let noon = Date(timeIntervalSince1970: 1_605_528_000)

  private let terminal = FakeTerminal()
  private let backend = DemoBackend()
  private let store = PersistentDataStore(InMemoryStore(now: { noon.addingTimeInterval(-300) }))

  private func makeTimeline(
    on terminal: FakeTerminal? = nil, repo: (any MomentsRepoType)? = nil,
    storedAt: Date? = nil, isOnline: Bool = true, get: (any GetMomentsByUserIDSessionType)? = nil,
    pause: @escaping @Sendable (Duration) async throws -> Void = { duration in
      // No time passes, so no age changes.
      if duration == LiveTimeline.ageDuration { try await Task.sleep(for: .seconds(1_000)) }
    }
  ) -> LiveTimeline {
    LiveTimeline(
      userID: "1",
      repo: repo
        ?? MomentsRepo(
          persistentDataStore: store, getMomentsByUserIDSession: get ?? backend, updateMomentLikeSession: backend),
      terminal: terminal ?? self.terminal, storedAt: storedAt, network: backend,
      isOnline: isOnline, now: { Self.noon }, pause: pause)
  }

  @Test func `It takes the terminal over, shows the timeline, and gives the terminal back at a quit`() async {
    let timeline = makeTimeline()
    async let ending = timeline.run()
    let lines = await terminal.lines { $0[22].contains("up to date") }
    #expect(lines[0].hasPrefix(" Mei Zhou  3 moments · 4 likes"))
    #expect(lines[0].hasSuffix("fetched now"))
    terminal.type("q")
    #expect(await ending == .quit)
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `A like changes list, detail and counter in one frame`() async {
    let timeline = makeTimeline()
    async let ending = timeline.run()
    _ = await terminal.lines { $0[22].contains("up to date") }
    terminal.type("jl")
    _ = await terminal.lines { $0[22].hasPrefix(" Liked 李晓雯") }
    terminal.type("q")
    _ = await ending
    let selected = await terminal.allFrames().filter { $0[3].hasPrefix("▸") }
    // What each of the three shows, without repetitions.
    var seen: [[String]] = []
    for lines in selected {
      let views = [
        String(lines[3].prefix(3).suffix(1)), String(lines[5].suffix(9)).trimmingCharacters(in: .whitespaces),
        String(lines[0].split(separator: " · ")[1].prefix(7)),
      ]
      if seen.last != views { seen.append(views) }
    }
    #expect(seen == [["·", "· 1 like", "4 likes"], ["♥", "♥ 2 likes", "5 likes"]])
  }

  @Test func `No frame shows observers that differ`() async {
    let repo = SplitRepo()
    let timeline = makeTimeline(repo: repo)
    async let ending = timeline.run()
    for relay in repo.relays { relay.send(.fixture(name: "Before")) }
    _ = await terminal.lines { $0[0].contains("Before") }
    for relay in repo.relays {
      relay.send(.fixture(name: "After", likedMomentIDs: ["0"]))
      terminal.type("j")
      // Time enough for every job of the timeline to draw what it should not.
      for _ in 0..<1_000 { await Task.yield() }
    }
    _ = await terminal.lines { $0[0].contains("After") }
    terminal.type("q")
    _ = await ending
    let mixed = await terminal.allFrames().filter { lines in
      lines[0].contains("After") != lines.contains { $0.contains("│ ♥ 0 likes") } && lines[2].hasPrefix("▸")
    }
    #expect(mixed == [])
  }

  @Test func `The stored timeline is shown with its age before the network answers`() async throws {
    let details = try await backend.getMoments(userID: "1")
    let stored = try await store.save(momentsDetails: details, userID: "1")
    let gate = Gate()
    let backend = backend
    let timeline = makeTimeline(
      storedAt: stored.savedAt,
      get: GetMomentsByUserIDSessionStub { userID throws(APISessionError) in
        await gate.pass()
        return try await backend.getMoments(userID: userID)
      })
    async let ending = timeline.run()
    let before = await terminal.lines { $0[0].hasSuffix("stored 5 minutes ago · loading…") }
    #expect(before[0].hasPrefix(" Mei Zhou  3 moments · 4 likes"))
    #expect(before[22] == " Showing what was stored 5 minutes ago, asking for news.")
    gate.open()
    let after = await terminal.lines { $0[22].contains("up to date") }
    #expect(after[0].hasSuffix("fetched now"))
    terminal.type("q")
    _ = await ending
  }

  @Test func `The network is taken away and given back`() async {
    let timeline = makeTimeline()
    async let ending = timeline.run()
    _ = await terminal.lines { $0[22].contains("up to date") }
    terminal.type("o")
    let offline = await terminal.lines { $0[0].hasSuffix("offline") }
    #expect(offline[23].contains("o go online"))
    // The switch works beside the keys.
    while await backend.isOnline { await Task.yield() }
    terminal.type("r")
    let failed = await terminal.lines { $0[22].hasPrefix(" Not loaded") }
    #expect(failed[0].hasPrefix(" Mei Zhou"))
    terminal.type("o")
    // Back online, the timeline is loaded without being asked for.
    var hasFailed = false
    for await frame in terminal.frames.stream where frame.size.rows > 0 {
      if frame.lines[22].hasPrefix(" Not loaded") { hasFailed = true }
      if hasFailed, frame.lines[22].contains("up to date") { break }
    }
    #expect(await backend.isOnline)
    terminal.type("q")
    _ = await ending
  }

  @Test func `Started without a network, it shows what is stored, and loads when the network is given back`()
    async throws
  {
    try await store.save(momentsDetails: backend.getMoments(userID: "1"), userID: "1")
    await backend.setOnline(false)
    let timeline = makeTimeline(storedAt: Self.noon.addingTimeInterval(-300), isOnline: false)
    async let ending = timeline.run()
    let offline = await terminal.lines { $0[22].contains("as the network is gone") }
    #expect(offline[0].hasSuffix("stored 5 minutes ago · offline"))
    #expect(offline[23].contains("o go online"))
    terminal.type("o")
    let online = await terminal.lines { $0[22].contains("up to date") }
    #expect(online[0].hasSuffix("fetched now"))
    terminal.type("q")
    #expect(await ending == .quit)
  }

  @Test func `A like waits, and says so, until the server answers`() async {
    let repo = SplitRepo()
    let timeline = makeTimeline(repo: repo)
    async let ending = timeline.run()
    for relay in repo.relays { relay.send(.fixture()) }
    _ = await terminal.lines { $0[2].hasPrefix("▸ ·  Taylor") }
    terminal.type("l")
    let waiting = await terminal.lines { $0[2].hasPrefix("▸ ·… Taylor") }
    #expect(waiting[0].hasSuffix("1 waiting"))
    #expect(waiting.contains { $0.contains("│ … waiting for the network") })
    repo.gate.open()
    // What waits and what happened come by different ways, so in either order.
    let liked = await terminal.lines { $0[22].hasPrefix(" Liked") && !$0[0].contains("waiting") }
    #expect(liked[2].hasPrefix("▸ ·  Taylor"))
    terminal.type("q")
    _ = await ending
  }

  @Test func `A new size makes a frame of that size`() async {
    let timeline = makeTimeline()
    async let ending = timeline.run()
    _ = await terminal.calls.stream.first(1)
    terminal.channel.send(.resized(TerminalSize(columns: 100, rows: 30)))
    #expect(await terminal.lines { $0.count == 30 }.count == 30)
    terminal.channel.send(.resized(TerminalSize(columns: 20, rows: 5)))
    #expect(await terminal.lines { $0.count == 5 } == ["Too small: 20×5", "Needs 40×10", "q quits", "", ""])
    terminal.type("q")
    #expect(await ending == .quit)
  }

  @Test func `A burst of changes while a frame is written becomes one frame`() async {
    let gate = Gate()
    let isHeld = Mutex(false)
    let terminal = FakeTerminal(beforeShowing: { if isHeld.withLock({ $0 }) { await gate.pass() } })
    let repo = SplitRepo()
    let timeline = makeTimeline(on: terminal, repo: repo)
    async let ending = timeline.run()
    for relay in repo.relays { relay.send(.fixture(momentIDs: (0..<100).map(String.init))) }
    _ = await terminal.lines { $0[21].contains(" 1/100 ") }
    isHeld.withLock { $0 = true }
    terminal.type("j")
    await gate.arrivals()
    let before = await terminal.allFrames().count
    for _ in 0..<49 { terminal.type("j") }
    for _ in 0..<1_000 { await Task.yield() }
    gate.open()
    _ = await terminal.lines { $0[21].contains(" 51/100 ") }
    terminal.type("q")
    _ = await ending
    #expect(await terminal.allFrames().count <= before + 2)
  }

  @Test func `Between frames there is a pause, however much changes`() async {
    let gate = Gate()
    let repo = SplitRepo()
    let timeline = makeTimeline(repo: repo) { duration in
      if duration == LiveTimeline.frameDuration {
        await gate.pass()
      } else {
        try await Task.sleep(for: .seconds(1_000))
      }
    }
    async let ending = timeline.run()
    await gate.arrivals()
    for relay in repo.relays { relay.send(.fixture(momentIDs: (0..<100).map(String.init))) }
    for _ in 0..<50 {
      terminal.type("j")
      await Task.yield()
    }
    #expect(await terminal.allFrames().count == 1)
    gate.open()
    _ = await terminal.lines { $0[21].contains(" 51/100 ") }
    terminal.type("q")
    _ = await ending
  }

  @Test(arguments: [("\u{3}", LiveTimeline.Ending.interrupted), ("jjkq", .quit)])
  func `Keys end it`(text: String, expected: LiveTimeline.Ending) async {
    let timeline = makeTimeline()
    async let ending = timeline.run()
    _ = await terminal.calls.stream.first(1)
    terminal.type(text)
    #expect(await ending == expected)
  }

  @Test func `A terminal that has gone ends it`() async {
    let timeline = makeTimeline()
    async let ending = timeline.run()
    _ = await terminal.calls.stream.first(1)
    terminal.channel.send(.ended)
    #expect(await ending == .hungUp)
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `A terminal that cannot be written to is given back and reported`() async {
    let error = TerminalError(code: 5, operation: "write")
    let terminal = FakeTerminal(failure: error)
    #expect(await makeTimeline(on: terminal).run() == .failed(error))
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `Cancelling it gives the terminal back`() async {
    let timeline = makeTimeline()
    let task = Task { await timeline.run() }
    _ = await terminal.frames.stream.first(1)
    task.cancel()
    _ = await task.value
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `Ctrl-Z gives the terminal to the shell`() async {
    let timeline = makeTimeline()
    async let ending = timeline.run()
    _ = await terminal.calls.stream.first(1)
    terminal.type("\u{1A}")
    #expect(await terminal.calls.stream.first(2) == ["open", "suspend"])
    terminal.type("q")
    _ = await ending
  }
}

/// A repository whose three observers a test serves one by one, and whose likes wait for it.
private final class SplitRepo: MomentsRepoType {
  let relays = (0..<3).map { _ in MulticastRelay<MomentsDetails>(replay: 1, buffering: .unbounded) }
  let gate = Gate()
  private let loadStates = CurrentValueRelay<MomentsLoadState>(.idle)
  private let pending = CurrentValueRelay<[String: Bool]>([:])
  private let observers = Mutex(0)

  var momentsDetails: MulticastStream<MomentsDetails, Never> { relays[0].stream }

  func momentsDetails(userID: String) -> MulticastStream<MomentsDetails, Never> {
    observers.withLock { count in
      defer { count += 1 }
      return relays[count % 3].stream
    }
  }

  func getMoments(userID: String) async throws(MomentsRepoError) {}

  func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome {
    pending.send([momentID: isLiked])
    await gate.pass()
    pending.send([:])
    return .confirmed
  }

  func loadState(userID: String) -> MulticastStream<MomentsLoadState, Never> { loadStates.stream }

  func pendingLikes(userID: String) -> MulticastStream<[String: Bool], Never> { pending.stream }

  func refreshMoments(userID: String) async throws(MomentsRepoError) {}

  func reloadMoments(userID: String) async throws(MomentsRepoError) {}

  func loadMoreMoments(userID: String) async throws(MomentsRepoError) {}
}

extension FakeTerminal {
  /// The lines of all frames so far.
  fileprivate func allFrames() async -> [[String]] {
    let subscription = frames.stream.subscribe()
    // The replay is there at once; what ends it is one more frame.
    frames.send(Frame(size: TerminalSize(columns: 0, rows: 0)))
    var all: [[String]] = []
    for await frame in subscription {
      if frame.lines.isEmpty { break }
      all.append(frame.lines)
    }
    return all
  }
}

extension MulticastStream where Failure == Never {
  /// The first elements.
  fileprivate func first(_ count: Int) async -> [Element] {
    var elements: [Element] = []
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }
}
