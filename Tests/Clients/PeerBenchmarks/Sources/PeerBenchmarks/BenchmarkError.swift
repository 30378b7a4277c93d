/// Why a comparison stopped.
enum BenchmarkError: Error, CustomStringConvertible {
  case usage(String)
  case wrongDelivery(system: String, expected: Tally, received: Tally)
  case wrongDrops(system: String, expected: Int, received: Int, dropped: Int)
  case leftRegistered(system: String, readers: Int)
  case noResidentMemory
  case childFailed(arguments: [String], status: Int32)
  case hung(system: String, seconds: Int)

  var description: String {
    switch self {
    case .usage(let problem):
      "\(problem)\n\n\(Options.usage)"
    case .wrongDelivery(let system, let expected, let received):
      """
      \(system) delivered wrongly: a reader got \(received.count) elements with the checksum \(received.checksum), \
      but \(expected.count) with the checksum \(expected.checksum) were sent to it.
      """
    case .wrongDrops(let system, let expected, let received, let dropped):
      "\(system) lost count: received \(received) and dropped \(dropped) are not the \(expected) elements sent."
    case .leftRegistered(let system, let readers):
      "\(system) still has \(readers) readers registered after all of them left."
    case .noResidentMemory:
      "The rows `memory` and `soak` read /proc/self/statm, which this system does not have: leave them out of --rows."
    case .childFailed(let arguments, let status):
      "The child process with the arguments \(arguments.joined(separator: " ")) ended with status \(status)."
    case .hung(let system, let seconds):
      """
      \(system) did not finish within \(seconds) seconds: it lost an element that a reader waits for, or the run is too \
      long for this machine (--scale shortens it, --timeout allows more).
      """
    }
  }
}
