internal import DataStore
internal import Foundation
internal import GraphQLClient
internal import HTTPTypes
internal import Hummingbird
internal import Moments

/// The body of the response to a failed request, as RFC 9457 defines it.
struct Problem: Encodable, HTTPResponseError {
  let title: String
  let detail: String
  private let code: Int
  private let headers: HTTPFields

  private enum CodingKeys: String, CodingKey {
    case title, detail
    case code = "status"
  }

  init(_ status: HTTPResponse.Status, _ detail: String, headers: HTTPFields = [:]) {
    (code, title, self.detail, self.headers) = (status.code, status.reasonPhrase, detail, headers)
  }

  var status: HTTPResponse.Status { HTTPResponse.Status(code: code) }

  func response(from request: Request, context: some RequestContext) throws -> Response {
    var headers = headers
    headers[.contentType] = "application/problem+json"
    return Response(
      status: status, headers: headers,
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(self))))
  }
}

extension Problem {
  init(_ error: MomentsRepoError) {
    switch error {
    case .session(let failure):
      // The service sends only valid documents, so a lasting GraphQL error means that the user or the moment is
      // unknown.
      if case .graphQL = failure, !failure.isTransient {
        self.init(.notFound, error.description)
      } else {
        self.init(.badGateway, error.description)
      }
    case .store(.invalidKey(_)): self.init(.badRequest, error.description)
    case .store: self.init(.internalServerError, error.description)
    case .queueFull, .cancelled: self.init(.serviceUnavailable, error.description, headers: [.retryAfter: "5"])
    case .signedOut: self.init(.forbidden, error.description)
    }
  }
}
