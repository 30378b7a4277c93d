import Foundation
import Testing

@testable import MomentsCommand

@Suite struct InvocationTests {
  @Test func `Without arguments, the timeline of the default user is shown`() {
    #expect(Invocation(arguments: []) == .timeline(TimelineOptions(userID: "0", dataFolder: nil, serverURL: nil)))
  }

  @Test func `Options set the user, the server and the data folder`() {
    #expect(
      Invocation(arguments: ["--bff", "http://127.0.0.1:80/graphql", "--user", "7", "--data", "/tmp/data"])
        == .timeline(
          TimelineOptions(
            userID: "7", dataFolder: URL(filePath: "/tmp/data", directoryHint: .isDirectory),
            serverURL: URL(string: "http://127.0.0.1:80/graphql"))))
  }

  @Test func `Commands, their options, --help and --version are recognized`() {
    #expect(Invocation(arguments: ["subjects"]) == .subjects)
    #expect(Invocation(arguments: ["sign-in"]) == .signIn(dataFolder: nil))
    #expect(
      Invocation(arguments: ["sign-in", "--data", "/tmp/data"])
        == .signIn(dataFolder: URL(filePath: "/tmp/data", directoryHint: .isDirectory)))
    #expect(Invocation(arguments: ["todo"]) == .todo(dataFolder: nil))
    #expect(
      Invocation(arguments: ["todo", "--data", "/tmp/data"])
        == .todo(dataFolder: URL(filePath: "/tmp/data", directoryHint: .isDirectory)))
    #expect(Invocation(arguments: ["report"]) == .report(TimelineOptions()))
    #expect(Invocation(arguments: ["sign-out"]) == .signOut(TimelineOptions(), discardsLikes: false))
    #expect(
      Invocation(arguments: ["sign-out", "--user", "7", "--discard"])
        == .signOut(TimelineOptions(userID: "7"), discardsLikes: true))
    #expect(
      Invocation(arguments: ["sign-out", "--discard", "--user", "7"])
        == .signOut(TimelineOptions(userID: "7"), discardsLikes: true))
    #expect(Invocation(arguments: ["report", "--user", "7"]) == .report(TimelineOptions(userID: "7")))
    #expect(Invocation(arguments: ["--help"]) == .help)
    #expect(Invocation(arguments: ["todo", "--help"]) == .help)
    #expect(Invocation(arguments: ["--user", "0", "--help"]) == .help)
    #expect(Invocation(arguments: ["--version"]) == .version)
  }

  @Test(arguments: [
    (["--bogus"], "unknown option '--bogus'."),
    (["bogus"], "unknown command 'bogus'."),
    (["--user", "1", "report"], "unexpected argument 'report'."),
    (["report", "more"], "unexpected argument 'more'."),
    (["--user"], "option '--user' needs a value."),
    (["--data", ""], "option '--data' needs a value."),
    (["--user", "--data", "/tmp/data"], "option '--user' needs a value."),
    (["sign-out", "--user", "--discard", "1"], "option '--user' needs a value."),
    (["report", "--discard"], "unknown option '--discard'."),
    (["--bff", "nonsense"], "'nonsense' is not an HTTP URL."),
    (["--bff", "file:///etc"], "'file:///etc' is not an HTTP URL."),
    (["subjects", "more"], "'subjects' takes no argument 'more'."),
    (["sign-in", "--user"], "'sign-in' takes no argument '--user'."),
    (["todo", "--user"], "'todo' takes no argument '--user'."),
    (["todo", "--data"], "option '--data' needs a value."),
    (["todo", "--data", "--discard"], "option '--data' needs a value."),
  ])
  func `The message names the invalid argument`(_ arguments: [String], _ problem: String) {
    #expect(Invocation(arguments: arguments) == .misuse(problem))
  }
}
