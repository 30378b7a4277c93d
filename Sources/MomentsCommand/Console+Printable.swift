internal import TerminalUI

extension Console {
  /// The same console for untrusted text, which it prints as a single line without commands that a terminal would run.
  var printable: Console {
    Console(
      output: { self.print(TerminalText.printable($0)) }, errors: { self.error(TerminalText.printable($0)) })
  }
}
