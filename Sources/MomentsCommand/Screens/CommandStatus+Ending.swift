internal import TerminalUI

extension CommandStatus {
  /// Creates the status a live screen leaves the program with, and prints an error.
  init(_ ending: ScreenSession.Ending, console: Console) {
    switch ending {
    case .quit, .hungUp: self = .success
    case .interrupted: self = .interrupted
    case .failed(let error):
      console.error("moments: \(error)")
      self = .inputOutput
    }
  }
}
