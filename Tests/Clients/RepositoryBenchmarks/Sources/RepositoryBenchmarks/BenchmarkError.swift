/// The error that stopped the program.
enum BenchmarkError: Error, CustomStringConvertible {
  case usage(String)
  case wrongValue(system: String, key: String)
  case unknownStoredSize(system: String)
  case overEvictionLimit(system: String, bytes: Int, limit: Int)
  case notConfirmed(system: String)
  case ended(system: String)
  case unreadableResidentMemory
  case childFailed(arguments: [String], status: Int32)
  case hung(system: String, seconds: Int)

  var description: String {
    switch self {
    case .usage(let problem): "\(problem)\n\n\(Options.usage)"
    case .wrongValue(let system, let key): "The value of \(key) in \(system) doesn't include all changes."
    case .unknownStoredSize(let system): "\(system) doesn't report the size of its stored values."
    case .overEvictionLimit(let system, let bytes, let limit):
      "\(system) stores \(bytes) bytes after evictions, although the limit is \(limit) bytes."
    case .notConfirmed(let system): "\(system) didn't confirm a change although the server can be reached."
    case .ended(let system): "The values of \(system) ended before the expected one."
    case .unreadableResidentMemory: "The resident memory can't be read from /proc/self/statm."
    case .childFailed(let arguments, let status): "The process with arguments \(arguments) ended with status \(status)."
    case .hung(let system, let seconds):
      """
      \(system) didn't finish within \(seconds) seconds: an observer didn't receive a value, a change wasn't sent, or \
      the run is too long for this machine (--scale shortens it, --timeout allows more time).
      """
    }
  }
}
