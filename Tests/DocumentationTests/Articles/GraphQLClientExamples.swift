import Foundation
import GraphQLClient

/// The code of `GraphQLClient.md`, copied unchanged so that the compiler checks it.
enum GraphQLClientExamples {
  static func firstExample(print: @escaping Print) async throws {
    struct Greeting: Decodable, Sendable {
      let greeting: String
    }

    struct OneReply: HTTPTransport {
      func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
        HTTPResponse(status: 200, body: HTTPBody(Data(#"{"data": {"greeting": "Hello."}}"#.utf8)))
      }
    }

    let greetings = APISession(url: URL(string: "https://example.com/graphql")!, transport: OneReply())
    let answer = try await greetings.post(
      document: "query Greeting { greeting }", operationName: "Greeting", variables: [String: String](),
      as: Greeting.self)
    print(answer.greeting)
  }

  static func greetViewer(server: URL, token: String, print: Print) async {
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

  actor Tokens {
    func current() -> String? { nil }
  }

  static func session(server: URL, tokens: Tokens) -> APISession {
    let session = APISession(
      url: server,
      authorization: {
        guard let token = await tokens.current() else { return nil }
        return "Bearer \(token)"
      })
    return session
  }

  struct Echo: HTTPTransport {
    func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
      HTTPResponse(status: 200, body: HTTPBody(request.body))
    }
  }
}
