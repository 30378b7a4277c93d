internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Synchronization

/// A router that counts the responses, and answers a failed request with a ``Problem``.
///
/// Unexpected errors are left to the framework and aren't counted.
///
/// The task of a connection keeps the memory of its deepest nested call as long as the connection is open. So each
/// level of calls adds to the memory of every open stream. Therefore the routes have no middleware, which would add
/// several levels. The work before and after a response is in functions that aren't inlined, so that their variables
/// aren't stored in the memory of the asynchronous call.
struct TimelineRouter {
  typealias Context = BasicRequestContext

  private let router = Router()
  private let counts: RequestCounts

  init(_ counts: RequestCounts) {
    self.counts = counts
  }

  /// Returns a responder with all routes.
  ///
  /// Call it once, after the last route was added.
  func buildResponder() -> RouterResponder<Context> {
    // A middleware applies to the routes that are added after it, and to requests without a route. No route is added
    // after `UnknownRequests`, so it applies only to requests without a route.
    router.add(middleware: UnknownRequests(counts: counts))
    return router.buildResponder()
  }

  /// Serves a path for one method, and answers the other common methods with status 405.
  func serve(
    _ method: HTTPRequest.Method, _ path: RouterPath,
    _ respond: @escaping @Sendable (Request, Context) async throws -> Response
  ) {
    on(path, method, respond)
    for other in [HTTPRequest.Method.get, .head, .post, .put, .patch, .delete, .options] where other != method {
      on(path, other) { (_, _) throws -> Response in
        throw Problem(.methodNotAllowed, "Use \(method.rawValue) here.", headers: [.allow: method.rawValue])
      }
    }
  }

  private func on(
    _ path: RouterPath, _ method: HTTPRequest.Method,
    _ respond: @escaping @Sendable (Request, Context) async throws -> Response
  ) {
    router.on(path, method: method) { [counts] request, context in
      do {
        return counts.record(try await respond(request, context), to: request.method, context)
      } catch {
        return counts.record(try Problem.response(to: error, from: request, context), to: request.method, context)
      }
    }
  }
}

/// Answers requests without a route: those with an unknown path or a method that no route has.
private struct UnknownRequests: RouterMiddleware {
  let counts: RequestCounts

  func handle(
    _ request: Request, context: BasicRequestContext, next: (Request, BasicRequestContext) async throws -> Response
  ) async throws -> Response {
    let problem = Problem(.notFound, "There is nothing at \(request.uri.path).")
    // All are counted together, as GET requests, because clients can send any number of different paths and methods.
    return counts.record(try problem.response(from: request, context: context), to: .get, context)
  }
}

extension Problem {
  /// Returns the response to a request that failed, or throws the error if it isn't expected.
  @inline(never)
  fileprivate static func response(
    to error: any Error, from request: Request, _ context: some RequestContext
  ) throws -> Response {
    let problem =
      switch error {
      case let error as Problem: error
      case let error as MomentsRepoError: Problem(error)
      case let error as HTTPError: Problem(error.status, error.body ?? error.status.reasonPhrase)
      default: throw error
      }
    return try problem.response(from: request, context: context)
  }
}

/// The number of responses for each method, route and status.
final class RequestCounts: Sendable {
  private let counts = Mutex<[String: Int]>([:])

  /// Counts a response, and returns it.
  @inline(never)
  func record(_ response: Response, to method: HTTPRequest.Method, _ context: some RequestContext) -> Response {
    let path = context.endpointPath ?? "none"
    let labels = #"method="\#(method.rawValue)",route="\#(path)",status="\#(response.status.code)""#
    counts.withLock { $0[labels, default: 0] += 1 }
    return response
  }

  /// The counts, in the order of their labels.
  var all: [(labels: String, count: Int)] {
    counts.withLock { $0.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
  }
}
