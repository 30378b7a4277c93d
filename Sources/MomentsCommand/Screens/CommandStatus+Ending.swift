internal import TerminalUI

extension CommandStatus {
  /// Creates the exit status for the ending of a live screen, and prints the error if the screen failed.
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
