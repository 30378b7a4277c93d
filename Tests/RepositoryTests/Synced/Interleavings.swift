/// All orders in which requests can begin and be served, and their replies can arrive.
///
/// Requests begin in the order of their numbers.
struct Interleavings {
  enum Step: CustomStringConvertible {
    case begin(Int)
    case serve(Int)
    case arrive(Int)

    var description: String {
      switch self {
      case .begin(let request): "begin \(request)"
      case .serve(let request): "serve \(request)"
      case .arrive(let request): "arrive \(request)"
      }
    }
  }

  let requests: Int
  /// The number of visited orders.
  private(set) var count = 0
  /// A description of the first order with a fault.
  private(set) var fault: String?
  private var path: [Step] = []

  init(requests: Int) {
    self.requests = requests
  }

  /// Visits each order until a fault is found.
  mutating func forEach(_ findFault: ([Step]) -> String?) {
    extend(Array(repeating: 0, count: requests), findFault)
  }

  private mutating func extend(_ progress: [Int], _ findFault: ([Step]) -> String?) {
    if fault != nil { return }
    if progress.allSatisfy({ $0 == 3 }) {
      count += 1
      fault = findFault(path).map { path.map(\.description).joined(separator: ", ") + ": " + $0 }
      return
    }
    for request in 0..<requests where progress[request] < 3 {
      if progress[request] == 0, request > 0, progress[request - 1] == 0 { continue }
      var next = progress
      next[request] += 1
      path.append([Step.begin(request), .serve(request), .arrive(request)][progress[request]])
      extend(next, findFault)
      path.removeLast()
    }
  }
}
