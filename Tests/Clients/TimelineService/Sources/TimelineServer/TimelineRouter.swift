internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Synchronization

/// A router that answers every request that fails with a ``Problem``, and counts the responses.
///
/// The task of a connection keeps the memory of its deepest call as long as the connection is open, so each call adds to
/// the memory of every open stream. So the router uses no middleware, which would add several calls. And what follows a
/// response are functions of their own, whose variables aren't part of the asynchronous call.
struct TimelineRouter {
  typealias Context = BasicRequestContext

  private let router = Router()
  private let counts: RequestCounts

  init(_ counts: RequestCounts) {
    self.counts = counts
    serve("**") { request, _ in throw Problem(.notFound, "There is nothing at \(request.uri.path).") }
  }

  func buildResponder() -> RouterResponder<Context> { router.buildResponder() }

  /// Serves a path with one method, and answers requests with other methods with status 405.
  func serve(
    _ method: HTTPRequest.Method, _ path: RouterPath,
    _ respond: @escaping @Sendable (Request, Context) async throws -> Response
  ) {
    on(path, method, respond)
    serve(path, except: method) { _, _ in
      throw Problem(.methodNotAllowed, "Use \(method.rawValue) here.", headers: [.allow: method.rawValue])
    }
  }

  /// Serves a path with all methods except one.
  private func serve(
    _ path: RouterPath, except method: HTTPRequest.Method? = nil,
    _ respond: @escaping @Sendable (Request, Context) throws -> Response
  ) {
    for other in [HTTPRequest.Method.get, .head, .post, .put, .patch, .delete, .options] where other != method {
      on(path, other, respond)
    }
  }

  private func on(
    _ path: RouterPath, _ method: HTTPRequest.Method,
    _ respond: @escaping @Sendable (Request, Context) async throws -> Response
  ) {
    router.on(path, method: method) { [counts] request, context in
      do {
        return counts.count(try await respond(request, context), to: request, context)
      } catch {
        return counts.count(try Problem.response(to: error, from: request, context), to: request, context)
      }
    }
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
      default: throw error
      }
    return try problem.response(from: request, context: context)
  }
}

/// The number of responses of each route with each status.
final class RequestCounts: Sendable {
  private let counts = Mutex<[String: Int]>([:])

  /// Counts a response, and returns it.
  @inline(never)
  func count(_ response: Response, to request: Request, _ context: some RequestContext) -> Response {
    let path = context.endpointPath ?? "none"
    let label = #"method="\#(request.method.rawValue)",route="\#(path)",status="\#(response.status.code)""#
    counts.withLock { $0[label, default: 0] += 1 }
    return response
  }

  /// The counts, in the order of their labels.
  var all: [(label: String, count: Int)] {
    counts.withLock { $0.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
  }
}
