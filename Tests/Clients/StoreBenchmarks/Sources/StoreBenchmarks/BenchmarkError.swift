/// An error that ends the benchmarks.
enum BenchmarkError: Error, CustomStringConvertible {
  case usage(String)
  case wrongValue(system: String, id: String)
  case notFullySynchronous(mode: Int?)
  case systemCall(String, code: Int32)
  case observationFailed(String)
  case server(String)
  case hung(system: String, seconds: Int)

  var description: String {
    switch self {
    case .usage(let problem): "\(problem)\n\n\(Options.usage)"
    case .wrongValue(let system, let id): "\(system) doesn't hold the value that was saved as \(id)."
    case .notFullySynchronous(let mode):
      "GRDB's connection has `synchronous = \(mode.map(String.init) ?? "none")` instead of 2, which is FULL."
    case .systemCall(let name, let code): "\(name) failed with the error \(code)."
    case .observationFailed(let reason): "GRDB's observation failed: \(reason)"
    case .server(let reason): "libpq: \(reason)"
    case .hung(let system, let seconds):
      """
      \(system) did not finish within \(seconds) seconds: an observer did not receive a value, or the run is too long \
      for this machine (--scale shortens it, --timeout allows more time).
      """
    }
  }
}
