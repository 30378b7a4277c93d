import Testing

@testable import TerminalUI

struct TerminalCapabilitiesTests {
  @Test(arguments: [nil, "", "dumb", "unknown"])
  func `A terminal that cannot position its cursor has no capabilities`(type: String?) {
    #expect(TerminalCapabilities(environment: type.map { ["TERM": $0, "COLORTERM": "truecolor"] } ?? [:]) == nil)
  }

  @Test(arguments: [
    (["TERM": "xterm"], ColorDepth.basic), (["TERM": "xterm-256color"], .indexed),
    (["TERM": "tmux-256color"], .indexed),
    (["TERM": "xterm-256color", "COLORTERM": "truecolor"], .direct),
    (["TERM": "xterm", "COLORTERM": "24bit"], .direct),
    (["TERM": "xterm-direct"], .direct), (["TERM": "linux"], .basic), (["TERM": "vt100"], .none),
    (["TERM": "xterm-mono"], .none), (["TERM": "xterm", "NO_COLOR": "1", "COLORTERM": "truecolor"], .none),
    (["TERM": "xterm-256color", "NO_COLOR": ""], .indexed),
  ])
  func `Colors are used if the terminal has them and the user wants them`(
    environment: [String: String], colors: ColorDepth
  ) {
    #expect(TerminalCapabilities(environment: environment)?.colors == colors)
  }

  @Test func `The start and the end of a frame are not marked for old or simple terminals`() {
    let synchronizesOutput = { TerminalCapabilities(environment: ["TERM": $0])?.synchronizesOutput }
    #expect(["xterm", "tmux-256color", "linux", "vt220"].map(synchronizesOutput) == [true, true, false, false])
  }
}
