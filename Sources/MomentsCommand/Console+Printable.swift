internal import TerminalUI

extension Console {
  /// The same console, for untrusted text: whatever it holds, it is printed as one line, and commands no terminal.
  var printable: Console {
    Console(
      output: { self.print(TerminalText.printable($0)) }, errors: { self.error(TerminalText.printable($0)) })
  }
}
