import DataStore
import Foundation
import Multicast
import TerminalUI
import TestSupport
import Testing
import Todo

@testable import MomentsCommand

@MainActor
@Suite(.timeLimit(.minutes(15))) struct TodoCommandTests {
  private func run(_ folder: URL? = nil) async -> (status: CommandStatus, output: [String], errors: [String]) {
    let recorder = ConsoleRecorder()
    let status = await TodoCommand(dataFolder: folder, console: recorder.console, liveSubscriptions: { 3 }).run()
    return (status, recorder.output, recorder.errors)
  }

  @Test func `Without a terminal, a script adds, edits and finishes todos, and prints what the screens show`() async {
    let (status, output, errors) = await run()
    #expect(status == .success)
    #expect(errors == [])
    #expect(
      output == [
        "Todo",
        "",
        "Add Todo: Buy milk",
        "Resource tracing: 3",
        "Finish adding a new todo.",
        "1 ToDos",
        "· Buy milk",
        "",
        "Add Todo: 写周报",
        "Resource tracing: 3",
        "Finish adding a new todo.",
        "2 ToDos",
        "· Buy milk",
        "· 写周报",
        "",
        "Add Todo: Never mind, cancelled",
        "Resource tracing: 3",
        "Finish adding a new todo.",
        "2 ToDos",
        "· Buy milk",
        "· 写周报",
        "",
        "Edit todo: Buy milk → Buy milk and bread",
        "Resource tracing: 3",
        "Finish editing a todo.",
        "2 ToDos",
        "· Buy milk and bread",
        "· 写周报",
        "",
        "Toggle: 写周报",
        "2 ToDos",
        "· Buy milk and bread",
        "✓ 写周报",
      ])
  }

  @Test func `The number of live subscriptions is the same each time a detail opens`() async {
    // The script runs in a process of its own, because the number includes every subscription of its process.
    await #expect(processExitsWith: .success) {
      let recorder = ConsoleRecorder()
      _ = await TodoCommand(dataFolder: nil, console: recorder.console).run()
      let countLines = recorder.output.filter { $0.hasPrefix("Resource tracing:") }
      precondition(countLines == Array(repeating: "Resource tracing: 3", count: 4), "\(countLines)")
    }
  }

  @Test func `With a folder, the todos are loaded on the next run`() async throws {
    let folder = TemporaryFolder()
    _ = await run(folder.url)
    let (status, output, errors) = await run(folder.url)
    #expect(status == .success)
    #expect(errors == [])
    #expect(output.prefix(3) == ["2 ToDos", "· Buy milk and bread", "✓ 写周报"])
    #expect(
      output.suffix(5) == [
        "4 ToDos", "· Buy milk and bread", "✓ 写周报", "· Buy milk and bread", "✓ 写周报",
      ])
  }

  @Test func `At five unfinished todos, Add is disabled, and the next run clears the list before it adds`()
    async throws
  {
    let folder = TemporaryFolder()
    for _ in 1...4 { _ = await run(folder.url) }
    // This run adds the fifth unfinished todo. Add is then disabled for the next todo and for the cancelled one.
    let fifthRunOutput = await run(folder.url).output
    #expect(fifthRunOutput.filter { $0 == "Add is disabled: 5 todos are unfinished." }.count == 2)
    let (status, output, _) = await run(folder.url)
    #expect(status == .success)
    #expect(output.first == "9 ToDos")
    #expect(output[11...12] == ["Add is disabled: 5 todos are unfinished. Clearing the list.", "Todo"])
    #expect(output.suffix(3) == ["2 ToDos", "· Buy milk and bread", "✓ 写周报"])
  }

  @Test func `A corrupt file is reported and quarantined, and the list starts empty`() async throws {
    let folder = TemporaryFolder()
    try folder.create()
    let file = folder.url.appending(path: try TodoList.key.keyName.encoded() + ".value")
    try Data("no list".utf8).write(to: file)
    let (status, output, errors) = await run(folder.url)
    #expect(status == .success)
    #expect(output.first == "Todo")
    #expect(errors.count == 1)
    #expect(errors.first?.hasPrefix("moments: The stored value \"todos\" could not be decoded") == true)
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.url.path())
    #expect(files.count { $0.contains(".corrupt-") } == 1)
  }

  @Test func `A list that this version can't decode is reported and left untouched`() async throws {
    let folder = TemporaryFolder()
    try await FileStore(folder: folder.url).save(7, for: StoreKey<Int>(TodoList.key.keyName))
    let file = folder.url.appending(path: try TodoList.key.keyName.encoded() + ".value")
    let bytes = try Data(contentsOf: file)
    let (status, output, errors) = await run(folder.url)
    #expect(status == .inputOutput)
    #expect(output == [])
    #expect(errors.count == 1)
    #expect(errors.first?.contains("It was left untouched: update the app") == true)
    #expect(try Data(contentsOf: file) == bytes)
  }

  @Test func `A todo folder that cannot be used is reported`() async {
    let folder = URL(filePath: "/dev/null/todo", directoryHint: .isDirectory)
    let (status, output, errors) = await run(folder)
    #expect(status == .inputOutput)
    #expect(output == [])
    #expect(errors.count == 1)
    // In a terminal, the failure is reported before the terminal is taken over.
    let recorder = ConsoleRecorder()
    let terminal = FakeTerminal()
    let liveCommand = TodoCommand(dataFolder: folder, console: recorder.console, terminal: terminal)
    #expect(await liveCommand.run() == .inputOutput)
    #expect(recorder.errors == errors)
    #expect(terminal.calls.latest == nil)
  }

  @Test func `In a terminal, the list is live, and added todos are loaded on the next run`() async throws {
    let folder = TemporaryFolder()
    let recorder = ConsoleRecorder()
    let terminal = FakeTerminal()
    async let status = TodoCommand(dataFolder: folder.url, console: recorder.console, terminal: terminal).run()
    _ = await terminal.lines { $0[3].contains("nothing to do") }
    _ = await terminal.lines(afterTyping: "a写周报\r") { $0[2].hasPrefix("▸ · 写周报") }
    terminal.type("q")
    #expect(await status == .success)
    #expect(recorder.output + recorder.errors == [])
    #expect(await run(folder.url).output.prefix(2) == ["1 ToDos", "· 写周报"])
  }

  @Test func `The name of a todo can neither control the terminal nor begin a new line`() async throws {
    let folder = TemporaryFolder()
    try await TodoList(store: FileStore(folder: folder.url)).add(TodoItem(name: "Buy\u{1B}[2J\n✓ milk"))
    let (status, output, errors) = await run(folder.url)
    #expect(status == .success)
    #expect(errors == [])
    #expect(output.prefix(3) == ["1 ToDos", "· Buy\u{FFFD}[2J ✓ milk", ""])
  }
}
