import Testing

@testable import MomentsCommand

@Suite struct SubjectsCommandTests {
  @Test func `Each event that a subscriber receives in the three examples is printed on its own line`() async {
    let recorder = ConsoleRecorder()
    #expect(await SubjectsCommand(console: recorder.console).run() == .success)
    #expect(
      recorder.output == [
        "PublishSubject",
        "observer1: next(2)",
        "observer1: next(3)",
        "observer2: next(3)",
        "observer1: completed",
        "observer2: completed",
        "",
        "BehaviorSubject",
        "observer1: next(1)",
        "observer1: next(2)",
        "observer2: next(2)",
        "observer1: next(3)",
        "observer2: next(3)",
        "observer1: completed",
        "observer2: completed",
        "",
        "ReplaySubject",
        "observer1: next(1)",
        "observer1: next(2)",
        "observer1: next(3)",
        "observer2: next(2)",
        "observer2: next(3)",
        "observer1: next(4)",
        "observer2: next(4)",
        "observer1: completed",
        "observer2: completed",
      ])
    #expect(recorder.errors == [])
  }
}
