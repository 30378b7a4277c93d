import DataStore
import Foundation
import GraphQLClient
import Moments
import MulticastTesting
import Repository
import TestSupport
import Testing

@testable import MomentsCommand
@testable import MomentsTesting

@Suite(.timeLimit(.minutes(15))) struct TimelineCommandTests {
  private static let noon = Date(timeIntervalSince1970: 1_605_528_000)

  /// Runs the command without a terminal, at a given time.
  private func run(
    _ options: TimelineOptions, at now: Date = noon
  ) async -> (status: CommandStatus, output: [String], errors: [String]) {
    let recorder = ConsoleRecorder()
    let status = await TimelineCommand(options: options, console: recorder.console, now: { now }).run()
    return (status, recorder.output, recorder.errors)
  }

  @Test func `The first run prints the fresh timeline, likes a moment, and prints what each observer receives`()
    async throws
  {
    let folder = TemporaryFolder()
    let (status, output, errors) = await run(TimelineOptions(userID: "1", dataFolder: folder.url))
    #expect(status == .success)
    #expect(errors == [])
    #expect(
      output == [
        "No timeline is stored yet.",
        "",
        "Fresh timeline of Mei Zhou:",
        "♥ Jake Lin: Whiteboard after the planning meeting (3 hours ago, 2 likes)",
        "· 李晓雯: 今天的晚霞 (11 hours ago, 1 like)",
        "♥ Ines Duarte: Porto from the other side of the river (1 day ago, 1 like)",
        "",
        "Liking 李晓雯: 今天的晚霞",
        "  list:    ♥ 李晓雯: 今天的晚霞",
        "  detail:  2 likes",
        "  counter: 4 likes, now 5 likes",
      ])
  }

  @Test func `The second run prints the stored timeline first, with its age and the first run's like`() async throws {
    let folder = TemporaryFolder()
    _ = await run(TimelineOptions(userID: "1", dataFolder: folder.url))
    let (status, output, _) = await run(
      TimelineOptions(userID: "1", dataFolder: folder.url), at: Self.noon.addingTimeInterval(300))
    #expect(status == .success)
    #expect(
      output.prefix(3) == [
        "Stored timeline of Mei Zhou, saved 5 minutes ago:",
        "♥ Jake Lin: Whiteboard after the planning meeting (3 hours ago, 2 likes)",
        "♥ 李晓雯: 今天的晚霞 (11 hours ago, 2 likes)",
      ])
    #expect(output[4...5] == ["", "Fresh timeline of Mei Zhou:"])
    #expect(output.last == "Every moment is already liked.")
  }

  @Test func `A report counts the timelines and the pending likes, and sends no likes`() async throws {
    let folder = TemporaryFolder()
    let options = TimelineOptions(userID: "1", dataFolder: folder.url)
    _ = await run(options)
    do {
      let offlineRepo = MomentsRepo(
        persistentDataStore: PersistentDataStore(FileStore(folder: folder.url)),
        getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ throws(APISessionError) in throw .timedOut },
        updateMomentLikeSession: UpdateMomentLikeSessionStub { _ throws(APISessionError) in throw .timedOut })
      let outcome = try await offlineRepo.updateLike(isLiked: true, momentID: "7", fromUserID: "1")
      #expect(outcome == .queued)
    }
    // The second report wouldn't count the like if the first one had sent it.
    for _ in 1...2 {
      let recorder = ConsoleRecorder()
      let later = Self.noon.addingTimeInterval(60)
      let status = await TimelineCommand(options: options, console: recorder.console, now: { later }).report()
      #expect(status == .success)
      let lines = recorder.output.flatMap { $0.split(separator: "\n") }
      #expect(lines.count == 3)
      #expect(lines.first?.hasPrefix("moments-details: 1 key, 1 mutation in 1 lane") ?? false, "\(lines)")
      // The like waits for the rest of the delay after its attempt, which is over by now, or for another repository,
      // because the one that makes the report never sends likes.
      let texts = ["sent by another repository", "next attempt in"]
      #expect(texts.contains { lines.last?.contains($0) ?? false }, "\(lines)")
    }
  }

  @Test func `A sign-out fails if likes can't be sent, and leaves no data of the user if it discards them`()
    async throws
  {
    let folder = TemporaryFolder()
    // No process listens on this port.
    let server = try #require(URL(string: "http://127.0.0.1:9/graphql"))
    let timelinesFolder = DataFolder.timelines(of: server, in: folder.url)
    let options = TimelineOptions(userID: "somebody", dataFolder: folder.url, serverURL: server)
    do {
      let store = PersistentDataStore(FileStore(folder: timelinesFolder))
      for userID in ["somebody", "another"] {
        try await store.save(momentsDetails: .fixture(userID: userID), userID: userID)
      }
      let offlineRepo = MomentsRepo(
        persistentDataStore: store,
        getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ throws(APISessionError) in throw .timedOut },
        updateMomentLikeSession: UpdateMomentLikeSessionStub { _ throws(APISessionError) in throw .timedOut })
      #expect(try await offlineRepo.updateLike(isLiked: true, momentID: "7", fromUserID: "somebody") == .queued)
    }
    let makeCommand = { (recorder: ConsoleRecorder) in
      TimelineCommand(options: options, console: recorder.console, now: { Self.noon })
    }
    let (firstRecorder, secondRecorder) = (ConsoleRecorder(), ConsoleRecorder())
    #expect(await makeCommand(firstRecorder).signOut(discardsLikes: false, sendingTime: .zero) == .unavailable)
    #expect(
      firstRecorder.errors == ["moments: Likes that can't be sent now: 1. Add --discard to sign out and discard them."])
    #expect(await makeCommand(secondRecorder).signOut(discardsLikes: true) == .success)
    #expect(secondRecorder.output == ["User somebody is signed out. All data of the user is erased."])
    let files = try FileManager.default.contentsOfDirectory(at: timelinesFolder, includingPropertiesForKeys: nil)
    let namesAndTexts = try files.map {
      $0.lastPathComponent + String(decoding: try Data(contentsOf: $0), as: UTF8.self)
    }
    #expect(namesAndTexts.filter { $0.contains("somebody") } == [])
    #expect(namesAndTexts.contains { $0.contains("another") })
  }

  @Test func `If the server is unreachable, the stored timeline and one error line are printed`()
    async throws
  {
    let folder = TemporaryFolder()
    // No process listens on this port.
    let server = try #require(URL(string: "http://127.0.0.1:9/graphql"))
    let store = FileStore(folder: DataFolder.timelines(of: server, in: folder.url), now: { Self.noon })
    try await PersistentDataStore(store).save(momentsDetails: .fixture(userID: "1"), userID: "1")
    let options = TimelineOptions(userID: "1", dataFolder: folder.url, serverURL: server)
    let (status, output, errors) = await run(options)
    #expect(status == .unavailable)
    // The number is that of EX_UNAVAILABLE in `sysexits.h`.
    #expect(status.rawValue == 69)
    #expect(
      output == [
        "Stored timeline of Jake Lin, saved now:", "· Taylor Swift: the pic is awesome (2 hours ago, 0 likes)",
      ])
    #expect(errors.count == 1)
    #expect(errors.first?.hasPrefix("moments: The server could not be reached") == true)
  }

  @Test func `The server's error for an unknown user is printed`() async throws {
    let folder = TemporaryFolder()
    // The second run uses a folder in which the server has already stored its data.
    _ = await run(TimelineOptions(dataFolder: folder.url))
    let (status, _, errors) = await run(TimelineOptions(userID: "9", dataFolder: folder.url))
    #expect(status == .unavailable)
    #expect(errors.count == 1)
    #expect(errors.first?.contains("No user has the id \"9\"") == true)
  }

  @Test func `A timeline folder that cannot be used is reported`() async {
    let folder = URL(filePath: "/dev/null/moments", directoryHint: .isDirectory)
    let (status, _, errors) = await run(TimelineOptions(dataFolder: folder))
    #expect(status == .inputOutput)
    #expect(errors.count == 1)
  }

  @Test func `The demonstration server loses no like among many concurrent ones`() async throws {
    let folder = TemporaryFolder()
    let backend = try await DemonstrationServer.open(FileStore(folder: folder.url))
    let unliked = try await backend.getMoments(userID: "0").moments.filter { $0.isLiked == false }
    #expect(unliked.count > 1)
    try await withThrowingTaskGroup { group in
      for moment in unliked {
        group.addTask { _ = try await backend.updateLike(true, momentID: moment.id, fromUserID: "0") }
      }
      try await group.waitForAll()
    }
    let reopened = try await DemonstrationServer.open(FileStore(folder: folder.url))
    #expect(try await reopened.getMoments(userID: "0").moments.filter { $0.isLiked == false } == [])
  }

  // MARK: Hostile text

  /// A timeline of user 1 from a hostile server, with text that a terminal would take as commands.
  private static let hostileTimeline: MomentsDetails = {
    let clearScreen = "\u{1B}[2J"
    var details = MomentsDetails.fixture(userID: "1", name: "Mei\(clearScreen)\nFresh")
    details.moments[0].userDetails.name = "Jake\u{7}\r\n♥ Ines"
    details.moments[0].title = "Title\(clearScreen)\u{202E}\nNo moment"
    details.moments[0].likes = ["no URL at all\n", "https://example.com/5.png"].map { .init(id: $0, avatar: $0) }
    return details
  }()

  /// Makes `timeline` the only timeline of the demonstration server in a data folder.
  private func storeOnServer(_ timeline: MomentsDetails, in folder: URL) async throws {
    try await FileStore(folder: folder.appending(path: "demo-server"))
      .save(DemonstrationServerState(timelines: [timeline]), for: StoreKey("demo-server"))
  }

  @Test func `Text from a server can neither control the terminal nor begin a new line`() async throws {
    let folder = TemporaryFolder()
    try await storeOnServer(Self.hostileTimeline, in: folder.url)
    let firstRun = await run(TimelineOptions(userID: "1", dataFolder: folder.url))
    #expect(firstRun.errors == [])
    #expect(
      firstRun.output == [
        "No timeline is stored yet.",
        "",
        "Fresh timeline of Mei\u{FFFD}[2J Fresh:",
        "· Jake\u{FFFD} ♥ Ines: Title\u{FFFD}[2J No moment (2 hours ago, 2 likes)",
        "",
        "Liking Jake\u{FFFD} ♥ Ines: Title\u{FFFD}[2J No moment",
        "  list:    ♥ Jake\u{FFFD} ♥ Ines: Title\u{FFFD}[2J No moment",
        "  detail:  3 likes",
        "  counter: 2 likes, now 3 likes",
      ])
    let secondRun = await run(TimelineOptions(userID: "1", dataFolder: folder.url))
    #expect(secondRun.output.first == "Stored timeline of Mei\u{FFFD}[2J Fresh, saved now:")
    let unknownUserRun = await run(TimelineOptions(userID: "9\u{1B}[31m\nmoments: 8", dataFolder: folder.url))
    #expect(unknownUserRun.status == .unavailable)
    #expect(unknownUserRun.errors.count == 1)
    // A `GraphQLError` replaces each control character with a space.
    #expect(unknownUserRun.errors.first?.contains(#"No user has the id "9 [31m moments: 8"."#) == true)
  }

  // MARK: Data folder

  /// The first key is that of a queued like, and the second that of another user's timeline.
  @Test(arguments: [StoreKeyName("moments-details.mutations", id: "x"), StoreKeyName("moments-details", id: "7")])
  func `An unreadable entry in the data folder doesn't affect the user's stored timeline`(key: StoreKeyName)
    async throws
  {
    let folder = TemporaryFolder()
    _ = await run(TimelineOptions(userID: "1", dataFolder: folder.url))
    // A folder in place of a file can't be read as a value.
    let name = try key.encoded() + ".value"
    try FileManager.default.createDirectory(at: folder.url.appending(path: name), withIntermediateDirectories: false)
    let (status, output, errors) = await run(TimelineOptions(userID: "1", dataFolder: folder.url))
    #expect(status == .success)
    #expect(
      output.prefix(3) == [
        "Stored timeline of Mei Zhou, saved now:",
        "♥ Jake Lin: Whiteboard after the planning meeting (3 hours ago, 2 likes)",
        "♥ 李晓雯: 今天的晚霞 (11 hours ago, 2 likes)",
      ])
    #expect(output.last == "Every moment is already liked.")
    #expect(errors == [])
  }

  @Test func `A timeline that this version can't decode is reported, and kept when the fresh one replaces it`()
    async throws
  {
    let folder = TemporaryFolder()
    let key = StoreKey<Int>("moments-details", id: "1")
    try await FileStore(folder: folder.url).save(7, for: key)
    let bytes = try Data(contentsOf: folder.url.appending(path: "moments-details.1.value"))
    let (status, output, errors) = await run(TimelineOptions(userID: "1", dataFolder: folder.url))
    #expect(status == .success)
    #expect(output.prefix(3) == ["No timeline that can be read is stored yet.", "", "Fresh timeline of Mei Zhou:"])
    #expect(errors.count == 1)
    #expect(errors.first?.contains("It was left untouched") == true)
    let files = try FileManager.default.contentsOfDirectory(at: folder.url, includingPropertiesForKeys: nil)
    let quarantined = files.filter { $0.lastPathComponent.contains(".corrupt-") }
    #expect(try quarantined.map { try Data(contentsOf: $0) } == [bytes])
  }

  @Test func `With a server URL, the demonstration's timelines aren't shown, and its likes aren't sent`() async throws {
    let folder = TemporaryFolder()
    let backend = DemonstrationServer()
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(FileStore(folder: folder.url)), getMomentsByUserIDSession: backend,
      updateMomentLikeSession: backend, clock: ManualClock())
    try await repo.getMoments(userID: "0")
    await backend.setOnline(false)
    #expect(try await repo.updateLike(isLiked: true, momentID: "1", fromUserID: "0") == .queued)
    let queued = try await repo.mutations.list()
    #expect(queued.count == 1)

    let (status, output, errors) = await run(
      TimelineOptions(dataFolder: folder.url, serverURL: URL(string: "http://127.0.0.1:9/graphql")))
    #expect(status == .unavailable)
    #expect(output == ["No timeline is stored yet."])
    #expect(errors.count == 1)
    #expect(try await repo.mutations.list() == queued)
  }

  @Test func `Two servers with similar addresses have different subfolders`() throws {
    let folder = URL(filePath: "/data", directoryHint: .isDirectory)
    func path(_ server: String) throws -> String {
      DataFolder.timelines(of: try #require(URL(string: server)), in: folder).path(percentEncoded: false)
    }
    // Capital letters are percent-encoded too, because some file systems ignore case.
    #expect(try path("https://a.example/Graph?q=/..") == "/data/servers/https%3A%2F%2Fa.example%2F%47raph%3Fq%3D%2F../")
    #expect(
      try path("https://a.example/graph%3Fq=/..") == "/data/servers/https%3A%2F%2Fa.example%2Fgraph%253%46q%3D%2F../")
  }

  @Test func `Two demonstration servers on one folder share their data`() async throws {
    let folder = TemporaryFolder()
    let first = try await DemonstrationServer.open(FileStore(folder: folder.url))
    let second = try await DemonstrationServer.open(FileStore(folder: folder.url))
    _ = try await first.updateLike(true, momentID: "1", fromUserID: "0")
    _ = try await second.updateLike(true, momentID: "3", fromUserID: "0")
    let third = try await DemonstrationServer.open(FileStore(folder: folder.url))
    for backend in [first, second, third] {
      let moments = try await backend.getMoments(userID: "0").moments
      #expect(moments.filter { ["1", "3"].contains($0.id) }.map(\.isLiked) == [true, true])
    }
  }
}
