import TerminalUI
import Testing

@testable import MomentsCommand

@Suite struct CommandStatusTests {
  @Test func `A failure of the terminal is reported, and the other endings of a screen are not`() {
    let error = TerminalError(code: 5, operation: "write")
    let recorder = ConsoleRecorder()
    #expect(CommandStatus(.failed(error), console: recorder.console) == .inputOutput)
    #expect(recorder.errors == ["moments: \(error)"])
    #expect(CommandStatus(.quit, console: recorder.console) == .success)
    #expect(CommandStatus(.hungUp, console: recorder.console) == .success)
    #expect(CommandStatus(.interrupted, console: recorder.console) == .interrupted)
    #expect(recorder.errors.count == 1)
  }
}
