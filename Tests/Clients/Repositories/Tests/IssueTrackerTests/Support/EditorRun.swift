import Foundation
import IssueTracker
import MulticastTesting
import Testing

/// A version of the editor.
enum EditorVersion: CaseIterable {
  case first, second

  var other: EditorVersion { self == .first ? .second : .first }
}

/// What the second version of the editor can read.
enum EditorUpdate: String, CaseIterable {
  /// It can read some edits of the first version, and all its values.
  case plain
  /// It can read all edits and values of the first version, which can read none of its edits.
  case migratingEdits
  /// It can read all edits and values of the first version, which can read none of its own.
  case migratingAll
}

/// A running editor.
struct EditorProcess {
  let version: EditorVersion
  let number: Int
  var program: Program
}

/// Editors of both versions on one store, with one server.
struct EditorRun {
  static let issues = ["l0-k0", "l0-k1", "l1-k0", "l1-k1"]

  let update: EditorUpdate
  var random: SplitMix64
  var history = EditHistory()
  private(set) var killCount = 0
  private(set) var processCount = 0
  private let folder: TemporaryFolder
  private let store: EditorStore
  private let server: TrackerServer

  init(_ kind: EditorStore.Kind, _ update: EditorUpdate, seed: UInt64) async throws {
    (self.update, random) = (update, SplitMix64(seed: seed))
    folder = try TemporaryFolder()
    store = try EditorStore(kind, in: folder.url)
    server = try await TrackerServer(journal: folder.url.appending(path: "journal"))
    for issue in Self.issues {
      _ = try await server.admin.create(Issue(id: issue, title: "new"), in: "moments", requestID: "other-\(issue)")
    }
  }

  // MARK: - Processes

  mutating func launch(_ version: EditorVersion, _ command: String, _ arguments: [Int] = []) throws -> EditorProcess {
    let number = history.start(readsAllValues: version == .second || update != .migratingAll)
    processCount += 1
    let words = [
      command, "\(number)", server.url.absoluteString, store.place, Self.issues.joined(separator: ","),
    ]
    let program = try Program(
      named: version == .first ? "EditorV1" : "EditorV2",
      (version == .first ? [] : [update.rawValue]) + words + arguments.map(String.init))
    return EditorProcess(version: version, number: number, program: program)
  }

  /// Runs an editor until it ends by itself, or kills itself.
  ///
  /// - Returns: Whether it has completed its command.
  @discardableResult
  mutating func run(_ version: EditorVersion, _ command: String, _ arguments: [Int] = []) async throws -> Bool {
    var process = try launch(version, command, arguments)
    return try await finish(&process)
  }

  /// Waits for the end of an editor, and returns whether it has completed its command.
  mutating func finish(_ process: inout EditorProcess) async throws -> Bool {
    // Much longer than any command takes.
    let watchdog = process.program.kill(after: .seconds(60))
    var last: String?
    while let line = await process.program.line() {
      history.add(line, of: process.number)
      last = line
    }
    await process.program.end()
    watchdog.cancel()
    if await watchdog.value { history.report("process \(process.number) hangs") }
    let hasSucceeded = await process.program.hasSucceeded
    let isDone = last == "done" && hasSucceeded
    if !isDone {
      killCount += 1
      await #expect(process.program.wasKilled)
    }
    try store.waitForEffects(of: process.program.identifier)
    history.end(process.number)
    history.check(try await server.changes())
    return isDone
  }

  /// Reads some lines of an editor.
  mutating func read(_ count: Int, of process: inout EditorProcess) async {
    for _ in 0..<count {
      guard let line = await process.program.line() else { return }
      history.add(line, of: process.number)
      // There are no further lines.
      if line == "edited" { return }
    }
  }

  mutating func kill(_ process: inout EditorProcess) async throws {
    await process.program.kill()
    _ = try await finish(&process)
  }

  // MARK: - The server

  func setFaults(rate: Double, seed: UInt64) async throws {
    try await server.setFaults(rate: rate, seed: seed)
  }

  func stop() async { await server.stop() }

  // MARK: - The end

  /// Sends what is left: with the second version if it can read everything, and otherwise with both versions in turn.
  mutating func deliver() async throws {
    try await server.setFaults(rate: 0, seed: 0)
    var version = EditorVersion.second
    var idleTurns = 0
    repeat {
      let count = try await server.changes().count
      try await run(version, "read")
      idleTurns = try await server.changes().count == count ? idleTurns + 1 : 0
      if update == .plain { version = version.other }
    } while !history.isQueueEmpty && idleTurns < 2
    try await checkEnd()
  }

  mutating func checkEnd() async throws {
    try await run(.second, "inspect")
    history.checkEnd(try await server.changes())
  }
}
