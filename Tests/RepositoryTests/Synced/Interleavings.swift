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

  private static let stepsPerRequest = 3

  let requestCount: Int
  /// The number of visited orders.
  private(set) var count = 0
  /// A description of the first order with a fault.
  private(set) var fault: String?
  /// The steps chosen so far in the order that is being built.
  private var steps: [Step] = []

  init(requests requestCount: Int) {
    self.requestCount = requestCount
  }

  /// Visits each order until a fault is found.
  mutating func forEach(_ findFault: ([Step]) -> String?) {
    visitContinuations(after: Array(repeating: 0, count: requestCount), findFault)
  }

  /// Visits each order that begins with ``steps``, until a fault is found.
  ///
  /// - Parameters:
  ///   - stepCounts: For each request, the number of its steps in ``steps``.
  ///   - findFault: Returns a description of the fault of an order, if any.
  private mutating func visitContinuations(after stepCounts: [Int], _ findFault: ([Step]) -> String?) {
    if fault != nil { return }
    if stepCounts.allSatisfy({ $0 == Self.stepsPerRequest }) {
      count += 1
      fault = findFault(steps).map { steps.map(\.description).joined(separator: ", ") + ": " + $0 }
      return
    }
    for request in 0..<requestCount where stepCounts[request] < Self.stepsPerRequest {
      if stepCounts[request] == 0, request > 0, stepCounts[request - 1] == 0 { continue }
      var nextCounts = stepCounts
      nextCounts[request] += 1
      steps.append([Step.begin(request), .serve(request), .arrive(request)][stepCounts[request]])
      visitContinuations(after: nextCounts, findFault)
      steps.removeLast()
    }
  }
}
