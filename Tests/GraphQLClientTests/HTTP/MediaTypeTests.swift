import Testing

@testable import GraphQLClient

struct MediaTypeTests {
  @Test(arguments: [
    "application/graphql-response+json", "application/graphql-response+json; charset=utf-8",
    "application/graphql-response+json;charset=utf-8", "Application/GraphQL-Response+JSON ;charset=utf-8",
    " application/graphql-response+json\t", "application/graphql-response+json;",
  ])
  func `The GraphQL media type is recognized with and without parameters`(contentType: String) {
    #expect(MediaType(contentType: contentType) == .graphQLResponse)
  }

  @Test(arguments: [
    nil, "", " ", "; charset=utf-8", "application/json", "APPLICATION/JSON", "application/json; charset=utf-8",
    "application/json;odata=verbose", "application/problem+json", "application/vnd.api+json; a=b",
  ])
  func `The JSON media type, other +json types, and a missing type are treated as JSON`(contentType: String?) {
    #expect(MediaType(contentType: contentType) == .json)
  }

  @Test(arguments: [
    "text/html", "text/html; charset=utf-8", "text/plain", "text/json", "application/octet-stream",
    "application/json-seq", "application/jsonp", "json", "application/graphql", "application/xml",
    "text/html; a=application/json", "text/html;application/graphql-response+json", "application/graphql-response",
    "application/json+xml",
  ])
  func `A type that is not the JSON media type and does not end in +json is classified as other`(contentType: String) {
    #expect(MediaType(contentType: contentType) == .other)
  }

  // MARK: - Repeated fields

  @Test(arguments: [
    "application/json, application/json", "application/json; charset=utf-8, application/json", "application/json,",
    ",application/json", "application/json, application/problem+json", #"application/json; a="b,c""#,
    #"application/json; a="\",text/html", application/json"#, " , ,",
  ])
  func `A repeated field whose members are all JSON is JSON`(contentType: String) {
    #expect(MediaType(contentType: contentType) == .json)
  }

  @Test func `A repeated field whose members are all the GraphQL media type is that type`() {
    let contentType = "application/graphql-response+json; charset=utf-8, application/graphql-response+json"
    #expect(MediaType(contentType: contentType) == .graphQLResponse)
  }

  @Test(arguments: [
    "application/json, text/html", "text/html, application/json", "text/html, text/html",
    "application/json, application/graphql-response+json", #"text/html; a="b, application/json""#,
    "application/json application/json",
  ])
  func `A repeated field whose members disagree, or aren't JSON, is classified as other`(contentType: String) {
    #expect(MediaType(contentType: contentType) == .other)
  }

  @Test func `A field with many members is read in linear time`() {
    let contentType = String(repeating: "application/json, ", count: 20_000)
    #expect(MediaType(contentType: contentType) == .json)
    #expect(MediaType(contentType: contentType + "text/html") == .other)
  }
}
