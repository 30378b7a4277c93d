/// The media type of a response, as far as GraphQL over HTTP tells types apart.
enum MediaType: Equatable {
  /// `application/graphql-response+json`: sent by a GraphQL server, whatever the status.
  case graphQLResponse
  /// `application/json`, another type of JSON, or none given.
  case json
  /// Anything else, such as the HTML of a proxy.
  case other

  /// - Parameter contentType: The value of the `Content-Type` field, with or without parameters.
  init(contentType: String?) {
    guard let contentType else {
      self = .json
      return
    }
    let essence = contentType.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
    switch essence {
    case "application/graphql-response+json": self = .graphQLResponse
    case "application/json", "": self = .json
    case _ where essence.hasSuffix("+json"): self = .json
    default: self = .other
    }
  }
}
