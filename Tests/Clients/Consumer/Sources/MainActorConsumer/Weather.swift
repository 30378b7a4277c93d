import Foundation
import GraphQLClient

// `nonisolated`, because a session decodes a reply outside the main actor.
nonisolated struct Weather: Decodable {
  let celsius: Int
}

/// A transport that answers from memory.
struct MemoryTransport: HTTPTransport {
  func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: ["Content-Type": "application/graphql-response+json"],
      body: HTTPBody(Data(#"{"data":{"celsius":21}}"#.utf8)))
  }
}

extension MainActorConsumer {
  static func query() async throws {
    guard let url = URL(string: "https://example.com/graphql") else { return }
    let session = APISession(url: url, transport: MemoryTransport())
    let weather: Weather = try await session.post(
      document: "query Weather($city: ID!) { celsius(city: $city) }", operationName: "Weather",
      variables: ["city": "Basel"])
    report("GraphQLClient", weather.celsius, expected: 21)
  }
}
