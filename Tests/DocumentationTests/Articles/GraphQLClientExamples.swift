import Foundation
import GraphQLClient

/// The code of `GraphQLClient.md`, copied exactly so that it is compiled.
enum GraphQLClientExamples {
  static func ask(server: URL, token: String, print: Print) async {
    struct Viewer: Decodable, Sendable {
      struct User: Decodable, Sendable {
        let name: String
      }
      let viewer: User
    }

    let session = APISession(url: server, headers: ["Authorization": "Bearer \(token)"])
    do throws(APISessionError) {
      let reply = try await session.post(
        document: "query Viewer { viewer { name } }", operationName: "Viewer", variables: [String: String](),
        as: Viewer.self)
      print("Hello, \(reply.viewer.name).")
    } catch {
      print(error.isTransient ? "Later: \(error)" : "No: \(error)")
    }
  }

  struct Echo: HTTPTransport {
    func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
      HTTPResponse(status: 200, body: HTTPBody(request.body))
    }
  }
}
