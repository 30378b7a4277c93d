internal import ArgumentParser
internal import Foundation
internal import GraphQLClient
internal import Moments
internal import MomentsTesting

/// The server that has the timelines.
enum Upstream: ExpressibleByArgument {
  case demonstration
  case graphQL(URL)

  init?(argument: String) {
    guard let url = URL(string: argument), url.scheme == "http" || url.scheme == "https", url.host() != nil else {
      return nil
    }
    self = .graphQL(url)
  }

  /// The default URL in the help: "none", because the demonstration, which is the default, runs in this process.
  var defaultValueDescription: String { "none" }

  func makeSessions() -> (any GetMomentsByUserIDSessionType, any UpdateMomentLikeSessionType) {
    switch self {
    case .demonstration:
      let server = DemonstrationServer()
      return (server, server)
    case .graphQL(let url):
      // The process id tells the server which service sent a request.
      let session = APISession(
        url: url, headers: ["User-Agent": "TimelineService/\(ProcessInfo.processInfo.processIdentifier)"],
        transport: AsyncHTTPClientTransport())
      return (GetMomentsByUserIDSession(apiSession: session), UpdateMomentLikeSession(apiSession: session))
    }
  }
}
