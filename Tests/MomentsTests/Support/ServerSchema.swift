/// The schemas that the GraphQL server of the tests can serve.
enum ServerSchema: String, CaseIterable, Sendable {
  /// The schema with pages and the URLs of links.
  case paging
  /// The schema of the original Moments app from a lecture, without pages and the URLs of links.
  case lecture

  /// The command-line options of the server.
  var options: [String] { ["--schema", rawValue] }
}
