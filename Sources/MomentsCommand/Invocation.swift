internal import Foundation

/// The action that the command's arguments ask for.
enum Invocation: Equatable {
  case timeline(TimelineOptions)
  case report(TimelineOptions)
  case signOut(TimelineOptions, discardsLikes: Bool)
  case subjects
  case todo(dataFolder: URL?)
  case signIn(dataFolder: URL?)
  case help
  case version
  /// The arguments are invalid; the text says which one, and why.
  case misuse(String)

  static let helpText = """
    Usage: moments [--user ID] [--data DIR] [--bff URL]
           moments report [--user ID] [--data DIR] [--bff URL]
           moments sign-out [--discard] [--user ID] [--data DIR] [--bff URL]
           moments subjects
           moments todo [--data DIR]
           moments sign-in [--data DIR]

    Shows the timeline of a user: first the stored timeline, with its age, then the fresh one. In a terminal, the
    timeline is live: a list, a detail and a counter observe one repository. The keys shown at the bottom select and
    like moments, and switch the demonstration server's network off and on. Without a terminal, or with TERM=dumb, the
    command prints lines: it likes a moment, and prints what each of the three observers received.

    Commands:
      report        Print the state of a user's stored timeline and pending likes. Contacts no server and sends nothing,
                    so it is safe to run while another copy of this program is running.
      sign-out      Erase all data of a user, on disk and in other running copies of this program. Pending likes are
                    sent first. If they can't be sent, nothing is erased.
      subjects      Print what subscribers receive from a publish, a current-value and a replay channel.
      todo          Show a todo list. In a terminal, keys add, edit, finish and delete todos. Without a terminal, run a
                    scripted session and print what the screens show.
      sign-in       Show a sign-in screen, and the timeline of the signed-in user. In a terminal, you fill in the form
                    and press its button. Without a terminal, run a scripted session in which two users sign in and
                    out, and print what the screen shows.

    Options:
      --user ID     The id of the user. (default: 0)
      --data DIR    The folder in which the timeline or the todos are stored. (default: a folder in the user's
                    application data; memory for 'todo' and 'sign-in' without a terminal)
      --bff URL     The URL of the GraphQL server. Its data is stored in a subfolder of its own. (default: a
                    demonstration server inside this program)
      --discard     For 'sign-out': discard pending likes instead of sending them first.
      --help        Print this text.
      --version     Print the version.

    Exit status: 0 success; 64 invalid arguments; 69 the server can't be reached, refused the request, or sent a reply
    that can't be used; 74 the folder, the terminal or the output can't be used; 130 interrupted by Ctrl-C; 141 the
    reader of the output closed it.
    """

  init(arguments: [String]) {
    do throws(Misuse) {
      self = try Self.parse(arguments)
    } catch {
      self = .misuse(error.problem)
    }
  }

  private struct Misuse: Error {
    let problem: String
  }

  private static func parse(_ arguments: [String]) throws(Misuse) -> Invocation {
    if arguments.contains("--help") || arguments.contains("-h") { return .help }
    if arguments.contains("--version") { return .version }
    switch arguments.first {
    case "subjects":
      try refuseFurtherArguments(in: arguments)
      return .subjects
    case "sign-in": return .signIn(dataFolder: try dataFolder(arguments))
    case "sign-out": return try parseSignOut(arguments.dropFirst())
    case "report": return .report(try timelineOptions(arguments.dropFirst()))
    case "todo": return .todo(dataFolder: try dataFolder(arguments))
    case let command? where !command.hasPrefix("-"): throw Misuse(problem: "unknown command '\(command)'.")
    default: return .timeline(try timelineOptions(arguments[...]))
    }
  }

  private static func refuseFurtherArguments(in arguments: [String]) throws(Misuse) {
    if arguments.count > 1 { throw Misuse(problem: "'\(arguments[0])' takes no argument '\(arguments[1])'.") }
  }

  /// Parses a command, whose name is the first argument, and whose only option is the data folder.
  private static func dataFolder(_ arguments: [String]) throws(Misuse) -> URL? {
    var rest = arguments.dropFirst()
    var folder: URL?
    while let argument = rest.popFirst() {
      guard argument == "--data" else { throw Misuse(problem: "'\(arguments[0])' takes no argument '\(argument)'.") }
      folder = URL(filePath: try takeValue(of: argument, from: &rest), directoryHint: .isDirectory)
    }
    return folder
  }

  /// Parses the arguments of `sign-out`: the options of a timeline, and `--discard`.
  private static func parseSignOut(_ arguments: ArraySlice<String>) throws(Misuse) -> Invocation {
    var options = TimelineOptions()
    var discardsLikes = false
    var rest = arguments
    while let argument = rest.popFirst() {
      if argument == "--discard" {
        discardsLikes = true
      } else {
        try parseTimelineOption(argument, from: &rest, into: &options)
      }
    }
    return .signOut(options, discardsLikes: discardsLikes)
  }

  private static func timelineOptions(_ arguments: ArraySlice<String>) throws(Misuse) -> TimelineOptions {
    var options = TimelineOptions()
    var rest = arguments
    while let argument = rest.popFirst() { try parseTimelineOption(argument, from: &rest, into: &options) }
    return options
  }

  /// Sets the option that an argument names, and takes the option's value from the arguments after it.
  private static func parseTimelineOption(
    _ argument: String, from rest: inout ArraySlice<String>, into options: inout TimelineOptions
  ) throws(Misuse) {
    switch argument {
    case "--user": options.userID = try takeValue(of: argument, from: &rest)
    case "--data":
      options.dataFolder = URL(filePath: try takeValue(of: argument, from: &rest), directoryHint: .isDirectory)
    case "--bff": options.serverURL = try serverURL(try takeValue(of: argument, from: &rest))
    case _ where argument.hasPrefix("-"): throw Misuse(problem: "unknown option '\(argument)'.")
    default: throw Misuse(problem: "unexpected argument '\(argument)'.")
    }
  }

  /// Takes the value of an option from the arguments after it.
  ///
  /// A value doesn't begin with `--`, so that an option isn't mistaken for the value of the option before it.
  private static func takeValue(of option: String, from rest: inout ArraySlice<String>) throws(Misuse) -> String {
    guard let value = rest.popFirst(), !value.isEmpty, !value.hasPrefix("--") else {
      throw Misuse(problem: "option '\(option)' needs a value.")
    }
    return value
  }

  private static func serverURL(_ text: String) throws(Misuse) -> URL {
    guard let url = URL(string: text, encodingInvalidCharacters: false), ["http", "https"].contains(url.scheme),
      url.host() != nil
    else {
      throw Misuse(problem: "'\(text)' is not an HTTP URL.")
    }
    return url
  }
}

/// The options of the commands that work with a timeline.
struct TimelineOptions: Equatable {
  var userID = "0"
  /// The folder of the stored data; `nil` for the default folder.
  var dataFolder: URL?
  /// The URL of the GraphQL server; `nil` for the demonstration server.
  var serverURL: URL?
}
