internal import HTTPTypes
package import Hummingbird
internal import Moments
internal import Synchronization

/// Answers every request that fails with a ``Problem``, and counts the responses.
///
/// Not a middleware, because its calls would add about 2 KiB to the memory of every open stream.
package struct TimelineResponder: HTTPResponder {
  package typealias Context = BasicRequestContext

  private let router: RouterResponder<Context>
  private let counts: RequestCounts

  init(_ router: RouterResponder<Context>, _ counts: RequestCounts) {
    self.router = router
    self.counts = counts
  }

  package func respond(to request: Request, context: Context) async throws -> Response {
    let response: Response
    do {
      response = try await router.respond(to: request, context: context)
    } catch {
      guard let problem = Problem(error) else { throw error }
      response = try problem.response(from: request, context: context)
    }
    // The router's name for every path and method that it doesn't serve.
    guard let path = context.endpointPath, path != "NotFound" else {
      // Unknown paths and methods count as one, because clients can send any number of them.
      counts.count(.get, "none", .notFound)
      return try Problem(.notFound, "There is nothing at \(request.uri.path).").response(
        from: request, context: context)
    }
    counts.count(request.method, path, response.status)
    return response
  }
}

extension Problem {
  /// Creates the problem of an error that the router doesn't answer itself.
  fileprivate init?(_ error: any Error) {
    guard let error = error as? MomentsRepoError else { return nil }
    self.init(error)
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
