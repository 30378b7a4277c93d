import Foundation
import GraphQLClient
import Multicast

/// A transport that answers with the JSON that a closure returns, and records the operations.
final class JSONTransport: HTTPTransport {
  private struct Body: Decodable {
    let operationName: String
  }

  private let recorded = Lock<[String]>([])
  private let answer: @Sendable (_ operation: String) -> Data

  init(answer: @escaping @Sendable (_ operation: String) -> Data) {
    self.answer = answer
  }

  /// The names of the requested operations, in order.
  var operations: [String] { recorded.withLock { $0 } }

  func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
    let operation: String
    do {
      operation = try JSONDecoder().decode(Body.self, from: request.body).operationName
    } catch {
      throw URLError(.badURL)
    }
    recorded.withLock { $0.append(operation) }
    return HTTPResponse(
      status: 200, headers: ["Content-Type": "application/json"], body: HTTPBody(answer(operation)))
  }

  /// A session over the transport.
  var apiSession: APISession { APISession(url: URL(string: "https://api.example/graphql")!, transport: self) }
}

extension JSONTransport {
  /// Returns the JSON of a timeline of seven moments, whose first one has the given title and like.
  static func timeline(title: String, isLiked: Bool = false) -> String {
    let moments = (0..<7).map { index in
      """
      {"id":"\(index)","userDetails":{"name":"n","avatar":"a"},"type":"PHOTOS","title":\(index == 0 ? title : "null"),\
      "photos":[],"createdDate":"1","isLiked":\(index == 0 && isLiked),"likes":[]}
      """
    }
    return """
      {"userDetails":{"id":"0","name":"n","avatar":"a","backgroundImage":"b"},"moments":[\(moments.joined(separator: ","))]}
      """
  }
}
