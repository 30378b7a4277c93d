internal import Foundation
internal import TerminalUI

/// The command `moments`: shows the timeline of a user, stores it on this device, and runs the library's examples.
@main
struct MomentsCommand {
  static let version = "0.1.0"

  static func main() async {
    let console = Console.standard
    let status: CommandStatus
    switch Invocation(arguments: Array(CommandLine.arguments.dropFirst())) {
    case .timeline(let options):
      status = await TimelineCommand(options: options, console: console, terminal: terminal).run()
    case .report(let options): status = await TimelineCommand(options: options, console: console).report()
    case .signOut(let options, let discardsLikes):
      status = await TimelineCommand(options: options, console: console).signOut(discardsLikes: discardsLikes)
    case .subjects: status = await SubjectsCommand(console: console).run()
    case .todo(let dataFolder):
      status = await TodoCommand(dataFolder: dataFolder, console: console, terminal: terminal).run()
    case .signIn(let dataFolder):
      status = await SignInCommand(dataFolder: dataFolder, console: console, terminal: terminal).run()
    case .help: status = console.succeed(printing: Invocation.helpText)
    case .version: status = console.succeed(printing: "moments \(version)")
    case .misuse(let problem):
      console.printable.error("moments: \(problem) See 'moments --help'.")
      status = .usage
    }
    exit(status.rawValue)
  }

  /// The terminal of this process; `nil` if the process isn't interactive or the terminal can't position its cursor.
  private static var terminal: Terminal? {
    guard TerminalDevice.standard.isInteractive else { return nil }
    return TerminalCapabilities(environment: ProcessInfo.processInfo.environment).map { Terminal(capabilities: $0) }
  }
}

/// The exit statuses of the command, by the conventions of `sysexits.h` and of shells.
enum CommandStatus: Int32 {
  case success = 0
  /// The arguments are invalid.
  case usage = 64
  /// The server could not be reached, refused the request, or sent a reply that can't be used.
  ///
  /// Also the status if a sign-out can't send the pending likes first, or if a like isn't made because the queue is
  /// full or the user has signed out.
  case unavailable = 69
  /// The data folder, the terminal or the output could not be read or written.
  case inputOutput = 74
  /// The user ended a live screen with Ctrl-C, or a sign-out was cancelled.
  ///
  /// The status is 128 plus the number of SIGINT, as in shells.
  case interrupted = 130
  /// The reader of the output closed it.
  ///
  /// The status is 128 plus the number of SIGPIPE, as in shells.
  case brokenPipe = 141
}
