/// An error that stops the benchmarks.
enum BenchmarkError: Error, CustomStringConvertible {
  case usage(String)
  case wrongDelivery(system: String, expected: Tally, received: Tally)
  case wrongDrops(system: String, sent: Int, received: Int, dropped: Int)
  case stillRegistered(system: String, subscribers: Int)
  case unreadableResidentMemory
  case childFailed(arguments: [String], status: Int32)
  case hung(system: String, seconds: Int)

  var description: String {
    switch self {
    case .usage(let problem):
      "\(problem)\n\n\(Options.usage)"
    case .wrongDelivery(let system, let expected, let received):
      """
      \(system) lost, duplicated or reordered elements: a subscriber received \(received.count) elements with the \
      checksum \(received.checksum) instead of \(expected.count) elements with the checksum \(expected.checksum).
      """
    case .wrongDrops(let system, let sent, let received, let dropped):
      """
      \(system) miscounted: for all subscribers together, received \(received) + dropped \(dropped) doesn't equal \
      sent \(sent).
      """
    case .stillRegistered(let system, let subscribers):
      "\(system) still has \(subscribers) registered subscribers after all of them left."
    case .unreadableResidentMemory:
      "The rows `memory` and `soak` need /proc/self/statm, which isn't available. Name other rows with --rows."
    case .childFailed(let arguments, let status):
      "The child process with the arguments \(arguments.joined(separator: " ")) exited with status \(status)."
    case .hung(let system, let seconds):
      """
      \(system) did not finish within \(seconds) seconds: it lost an element that a subscriber waits for, or the run \
      is too long for this machine. Shorten the run with --scale, or raise the limit with --timeout.
      """
    }
  }
}
