internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Synchronization

/// Answers every request that fails with a ``Problem``, and counts the responses.
///
/// One middleware, because each one adds to the memory of every open stream.
struct ResponseMiddleware<Context: RequestContext>: RouterMiddleware {
  private let counts: RequestCounts

  init(_ counts: RequestCounts) {
    self.counts = counts
  }

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    let response: Response
    do {
      response = try await next(request, context)
    } catch {
      guard let problem = Problem(error, path: request.uri.path) else { throw error }
      response = try problem.response(from: request, context: context)
    }
    // Unknown paths and methods count as one, because clients can send any number of them.
    let isKnown = response.status != .notFound || context.endpointPath != "NotFound"
    counts.count(isKnown ? request.method : .get, context.endpointPath ?? "none", response.status)
    return response
  }
}

extension Problem {
  fileprivate init?(_ error: any Error, path: String) {
    switch error {
    case let error as Problem: self = error
    case let error as MomentsRepoError: self.init(error)
    case let error as HTTPError: self.init(error.status, error.body ?? "There is nothing at \(path).")
    default: return nil
    }
  }
}

/// The number of responses of each route with each status.
final class RequestCounts: Sendable {
  private let counts = Mutex<[String: Int]>([:])

  func count(_ method: HTTPRequest.Method, _ path: String, _ status: HTTPResponse.Status) {
    let label = #"method="\#(method.rawValue)",route="\#(path)",status="\#(status.code)""#
    counts.withLock { $0[label, default: 0] += 1 }
  }

  /// The counts, in the order of their labels.
  var all: [(label: String, count: Int)] {
    counts.withLock { $0.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
  }
}
