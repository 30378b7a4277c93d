internal import TerminalUI

extension Console {
  /// The same console for untrusted text: it prints each text as a single line without control characters.
  var printable: Console {
    Console(
      output: { self.print(TerminalText.printable($0)) }, errors: { self.error(TerminalText.printable($0)) })
  }
}
