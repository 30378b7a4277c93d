internal import Foundation
internal import MulticastTesting

/// An app of the tracker without screens, in a process that a test may kill at any time.
///
/// - `TrackerChild edit SERVER FOLDER SEED FIRST` edits issues, with marks from a number on, until it is killed.
/// - `TrackerChild deliver SERVER FOLDER ISSUE…` waits until all changes are delivered, and prints what is shown.
///
/// Each change has a mark that no other change has. The process prints one line for each event:
/// - `pending MARK…`: the changes that the queues had at the start
/// - `list COUNT`: the number of issues that the list shows
/// - `loaded COUNT`: the number of issues of the server that the list shows after another page was loaded
/// - `begin LANE MARK`: a change begins
/// - `ack MARK RESULT`: `perform` has returned, so the change is durable
/// - `failed MARK ERROR`: `perform` has thrown
/// - `dropped MARK REASON`: a change that the server didn't accept is removed from the queue
/// - `requeued MARK`: a change that was given up is sent again
/// - `final JSON` and `detail JSON`: the whole list and an issue, when all is delivered
@main enum TrackerChild {
  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count >= 3, let server = URL(string: arguments[1]) else { fatalError("no server and folder") }
    let app = App(server: server, folder: URL(filePath: arguments[2]))
    let signIn = Task { await app.keepSignedIn() }
    defer { signIn.cancel() }
    switch arguments[0] {
    case "edit":
      guard arguments.count == 5, let seed = UInt64(arguments[3]), let first = Int(arguments[4]) else {
        fatalError("no seed and number")
      }
      say(["pending"] + (try await app.queuedMarks()))
      var seeds = SplitMix64(seed: seed)
      let list = ShownList()
      var reader = Reader(app: app, list: list, random: SplitMix64(seed: seeds.next()))
      await reader.load()
      await withTaskGroup { group in
        group.addTask { await list.observe(app) }
        group.addTask { [reader] in
          var reader = reader
          await reader.run()
        }
        for index in 0..<Editor.count {
          let random = SplitMix64(seed: seeds.next())
          group.addTask {
            var editor = Editor(app: app, list: list, random: random, index: index, next: first + index)
            await editor.run()
          }
        }
      }
    case "deliver": try await app.deliver(details: Array(arguments.dropFirst(3)))
    default: fatalError("unknown command \(arguments[0])")
    }
  }
}

/// Prints words as a line to standard output, unbuffered.
func say(_ words: [String]) {
  FileHandle.standardOutput.write(Data((words.joined(separator: " ") + "\n").utf8))
}
