import DataStore
import Foundation
import Moments
import Testing

@testable import MomentsCommand

@Suite(.timeLimit(.minutes(5))) struct TimelineCommandTests {
  private static let noon = Date(timeIntervalSince1970: 1_605_528_000)

  /// Runs the command as a person would, at a given time, on a given folder.
  private func run(
    _ options: TimelineOptions, at now: Date = noon
  ) async -> (status: CommandStatus, output: [String], errors: [String]) {
    let recorder = ConsoleRecorder()
    let status = await TimelineCommand(options: options, console: recorder.console, now: { now }).run()
    return (status, recorder.output, recorder.errors)
  }

  private func withFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "moments-command-\(UUID().uuidString)")
    try await body(folder)
    try FileManager.default.removeItem(at: folder)
  }

  @Test func `The first run shows the fresh timeline, likes a moment, and shows what each observer saw`() async throws {
    try await withFolder { folder in
      let (status, output, errors) = await run(TimelineOptions(userID: "1", dataFolder: folder))
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
  }

  @Test func `The second run shows the stored timeline first, with its age and the like`() async throws {
    try await withFolder { folder in
      _ = await run(TimelineOptions(userID: "1", dataFolder: folder))
      let (status, output, _) = await run(
        TimelineOptions(userID: "1", dataFolder: folder), at: Self.noon.addingTimeInterval(300))
      #expect(status == .success)
      #expect(output.prefix(2) == ["Stored timeline of Mei Zhou, saved 5 minutes ago:", output[1]])
      #expect(output[2] == "♥ 李晓雯: 今天的晚霞 (11 hours ago, 2 likes)")
      #expect(output[4...5] == ["", "Fresh timeline of Mei Zhou:"])
      #expect(output.last == "Every moment is liked already.")
    }
  }

  @Test func `A server that cannot be reached leaves the stored timeline, one clear line, and its exit status`()
    async throws
  {
    try await withFolder { folder in
      _ = await run(TimelineOptions(userID: "1", dataFolder: folder))
      // Nothing listens on the port of the discard service here, and nothing may.
      let options = TimelineOptions(
        userID: "1", dataFolder: folder, serverURL: URL(string: "http://127.0.0.1:9/graphql"))
      let (status, output, errors) = await run(options)
      #expect(status == .unavailable)
      #expect(status.rawValue == 69)
      #expect(output.count == 4)
      #expect(output.first == "Stored timeline of Mei Zhou, saved now:")
      #expect(errors.count == 1)
      #expect(errors.first?.hasPrefix("moments: The server could not be reached") == true)
    }
  }

  @Test func `An unknown user is refused`() async throws {
    try await withFolder { folder in
      // The folder is there once something is saved in it.
      _ = await run(TimelineOptions(dataFolder: folder))
      let (status, _, errors) = await run(TimelineOptions(userID: "9", dataFolder: folder))
      #expect(status == .unavailable)
      #expect(errors.count == 1)
      #expect(errors.first?.contains("No user has the id \"9\"") == true)
    }
  }

  @Test func `A folder that cannot be used is told`() async {
    let folder = URL(filePath: "/dev/null/moments", directoryHint: .isDirectory)
    let (status, _, errors) = await run(TimelineOptions(dataFolder: folder))
    #expect(status == .inputOutput)
    #expect(errors.count == 1)
  }

  @Test func `The demonstration server forgets no like among many at once`() async throws {
    try await withFolder { folder in
      let backend = try await DemoBackend.open(FileStore(folder: folder))
      let unliked = try await backend.getMoments(userID: "0").moments.filter { $0.isLiked == false }
      #expect(unliked.count > 1)
      try await withThrowingTaskGroup { group in
        for moment in unliked {
          group.addTask { _ = try await backend.updateLike(true, momentID: moment.id, fromUserID: "0") }
        }
        try await group.waitForAll()
      }
      let reopened = try await DemoBackend.open(FileStore(folder: folder))
      #expect(try await reopened.getMoments(userID: "0").moments.filter { $0.isLiked == false } == [])
    }
  }
}
