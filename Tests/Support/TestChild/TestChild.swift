internal import DataStore
internal import Foundation
internal import TestSupport

/// The commands that a test runs in another process: `TestChild COMMAND PLACE ARGUMENTS…`.
///
/// The place is that of a store; see ``SharedPlace/open(_:fileSystem:)``. For `like`, `like-dying-at-call` and
/// `deliver-likes`, it is the folder that contains the store's folder and the server's file. Commands that use no store
/// ignore their place.
///
/// A command reports its progress as lines on standard output, each of which is written immediately.
@main
enum TestChild {
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard let command = arguments.first, let path = arguments.dropFirst().first else { fail("no command or place") }
    let rest = Array(arguments.dropFirst(2))
    let place = URL(filePath: path)
    // Opening a store changes nothing yet, so it is harmless if the command doesn't use this one.
    let store = open(place)
    switch command {
    case "save": try await save(rest[0], for: rest[1], in: store)
    case "remove": try await remove(rest[0], in: store)
    case "follow": try await follow(rest[0], in: store)
    case "commit": await commit(kind(rest[0]), from: number(rest[1]), to: number(rest[2]), in: store)
    case "die-at-call":
      await dieAtCall(number(rest[0]), committing: kind(rest[1]), from: number(rest[2]), to: number(rest[3]), in: place)
    case "stamp": try await stamp(as: number(rest[0]), from: number(rest[1]), in: store)
    case "count-up": try await countUp(in: store)
    case "stage": try await stage(in: place)
    case "fill-disk": try await fillDisk(limit: number(rest[0]), in: store)
    case "lose-permission": try await losePermission(in: place, store)
    case "like": try await like(from: number(rest[0]), seed: UInt64(number(rest[1])), in: place)
    case "like-dying-at-call":
      try await like(from: number(rest[1]), to: number(rest[2]), dyingAtCall: number(rest[0]), in: place)
    case "like-at":
      guard let server = URL(string: rest[0]) else { fail("\(rest[0]) is not a URL") }
      try await like(Array(rest.dropFirst()), at: server, in: place)
    case "deliver-likes": try await deliverLikes(in: place)
    case "edit": try await edit(as: rest[0], from: number(rest[1]), seed: UInt64(number(rest[2])), in: place)
    case "edit-dying-at-call":
      try await edit(
        as: "a", number: number(rest[1]), losesFirstReplies: rest[2] == "losing-replies", dyingAtCall: number(rest[0]),
        in: place)
    case "deliver-edits": try await deliverEdits(in: place)
    case "take-steps": try await takeSteps(as: rest[0], in: place)
    case "obey-lines": try await obeyLines(in: place)
    case "keep-words": try await keepWords(in: place)
    case "sign-out-dying-at-call": try await signOut(dyingAtCall: number(rest[0]), in: place)
    case "finish-sign-out": try await finishSignOut(in: place)
    case "serve-requested-scripts": try serveRequestedScripts()
    case "meet-hostile-servers": try await meetHostileServers(rest[0], kindCount: number(rest[1]))
    case "ask-by-url-session": try await askByURLSession(rest[0], rest[1])
    default: fail("unknown command \(command)")
    }
  }

  static func open(_ place: URL, _ fileSystem: FileSystem = FileSystem()) -> any KeyValueStore {
    do {
      return try SharedPlace.open(place, fileSystem: fileSystem)
    } catch {
      fail("\(error)")
    }
  }

  /// Prints a line to standard output, unbuffered.
  static func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }

  static func fail(_ reason: String) -> Never {
    fatalError("TestChild: \(reason)")
  }

  private static func kind(_ text: String) -> NumberedCommits {
    guard let kind = NumberedCommits(rawValue: text) else { fail("\(text) is not a kind of commits") }
    return kind
  }

  private static func number(_ text: String) -> Int {
    guard let number = Int(text) else { fail("\(text) is not a number") }
    return number
  }
}
