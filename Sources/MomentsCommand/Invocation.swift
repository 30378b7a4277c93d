internal import Foundation

/// What the command was asked to do, read from its arguments.
enum Invocation: Equatable {
  case timeline(TimelineOptions)
  case report(TimelineOptions)
  case signOut(TimelineOptions, discardsLikes: Bool)
  case subjects
  case todo(dataFolder: URL?)
  case signIn(dataFolder: URL?)
  case help
  case version
  /// The arguments make no sense; the text says which and why.
  case misuse(String)

  static let helpText = """
    Usage: moments [--user ID] [--data DIR] [--bff URL]
           moments report [--user ID] [--data DIR] [--bff URL]
           moments sign-out [--discard] [--user ID] [--data DIR] [--bff URL]
           moments subjects
           moments todo [--data DIR]
           moments sign-in [--data DIR]

    Shows the timeline of a user: the stored one first, with its age, then the fresh one. In a terminal it is live: list,
    detail and counter observe one repository, and keys, shown at the bottom, move, like and switch the network. Without
    one, or with TERM=dumb, it prints lines: likes a moment, and shows what each of the three observers saw.

    Commands:
      report        Print what is stored of a user's timeline, and the likes that wait. Asks no server and sends nothing,
                    so it may be run beside another one.
      sign-out      Erase all that is kept of a user, also for other running copies of this program. Likes that wait are
                    sent first; if that isn't possible, nothing is erased unless --discard says so.
      subjects      Print what observers of the three kinds of channel see: publish, current value, replay.
      todo          Things to do. In a terminal, keys add, edit, finish and delete them. Without one, do as a person
                    would, and print what the screens show.
      sign-in       A sign-in screen, and the timeline of the user who is signed in. In a terminal, type and press its
                    button. Without one, sign two users in and out as persons would, and print what the screen shows.

    Options:
      --user ID     Whose timeline. (default: 0)
      --data DIR    The folder that keeps the timeline, or the todos. (default: a folder of the user's application data;
                    memory for 'todo' and 'sign-in' without a terminal)
      --bff URL     The GraphQL server to ask; what is kept of it is in a part of the folder for this URL alone.
                    (default: a demonstration server inside this program)
      --help        Print this text.
      --version     Print the version.

    Exit status: 0 success; 64 wrong usage; 69 the server cannot be reached or refuses; 74 the folder, the terminal or
    the output cannot be used; 130 ended by Ctrl-C; 141 the reader of the output is gone.
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
      try refuseArguments(of: arguments)
      return .subjects
    case "sign-in": return .signIn(dataFolder: try dataFolder(arguments))
    case "sign-out":
      var rest = arguments.dropFirst()
      rest.removeAll { $0 == "--discard" }
      return .signOut(try timelineOptions(rest), discardsLikes: rest.count < arguments.count - 1)
    case "report": return .report(try timelineOptions(arguments.dropFirst()))
    case "todo": return .todo(dataFolder: try dataFolder(arguments))
    default: return .timeline(try timelineOptions(arguments[...]))
    }
  }

  private static func refuseArguments(of command: [String]) throws(Misuse) {
    if command.count > 1 { throw Misuse(problem: "'\(command[0])' takes no argument '\(command[1])'.") }
  }

  /// The folder of a command that takes no other option.
  private static func dataFolder(_ command: [String]) throws(Misuse) -> URL? {
    var rest = command.dropFirst()
    var folder: URL?
    while let argument = rest.popFirst() {
      guard argument == "--data" else { throw Misuse(problem: "'\(command[0])' takes no argument '\(argument)'.") }
      folder = URL(filePath: try value(of: argument, from: &rest), directoryHint: .isDirectory)
    }
    return folder
  }

  private static func timelineOptions(_ arguments: ArraySlice<String>) throws(Misuse) -> TimelineOptions {
    var options = TimelineOptions()
    var rest = arguments
    while let argument = rest.popFirst() {
      switch argument {
      case "--user": options.userID = try value(of: argument, from: &rest)
      case "--data":
        options.dataFolder = URL(filePath: try value(of: argument, from: &rest), directoryHint: .isDirectory)
      case "--bff": options.serverURL = try serverURL(try value(of: argument, from: &rest))
      case _ where argument.hasPrefix("-"): throw Misuse(problem: "unknown option '\(argument)'.")
      default: throw Misuse(problem: "unknown command '\(argument)'.")
      }
    }
    return options
  }

  private static func value(of option: String, from rest: inout ArraySlice<String>) throws(Misuse) -> String {
    guard let value = rest.popFirst(), !value.isEmpty else {
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

/// What `moments` shows, and from where.
struct TimelineOptions: Equatable {
  var userID = "0"
  /// Nil for the user's own folder.
  var dataFolder: URL?
  /// Nil for the demonstration server.
  var serverURL: URL?
}
