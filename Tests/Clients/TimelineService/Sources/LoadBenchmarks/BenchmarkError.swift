/// A failure of a benchmark.
enum BenchmarkError: Error, CustomStringConvertible {
  case usage(String)
  case hung(system: String, seconds: Int)
  case notConverged(system: String, missing: Int)
  case outdated(system: String, streams: Int)
  case wentBack(system: String, times: Int)
  case likeFailed(system: String, status: Int)
  case unreadableResidentMemory
  case unreadableProcessorTime
  case noFreePort
  case unreachable(system: String)

  var description: String {
    switch self {
    case .usage(let problem): "\(problem)\n\n\(Options.usage)"
    case .hung(let system, let seconds): "\(system) did not finish within \(seconds) seconds."
    case .notConverged(let system, let missing):
      "The streams of \(system) don't show all likes: \(missing) are missing, summed over the streams."
    case .outdated(let system, let streams): "\(streams) streams of \(system) don't show the newest timeline."
    case .wentBack(let system, let times): "\(times) times, a stream of \(system) went back to an older timeline."
    case .likeFailed(let system, let status): "\(system) answered a like with the status \(status)."
    case .unreadableResidentMemory: "The resident memory can't be read from /proc."
    case .unreadableProcessorTime: "The processor time can't be read from /proc."
    case .noFreePort: "There is no free port."
    case .unreachable(let system): "\(system) can't be reached."
    }
  }
}
