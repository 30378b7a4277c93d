/// The schemas that the GraphQL server of the tests can serve.
enum ServerSchema: String, CaseIterable, Sendable {
  /// With pages, and addresses of links.
  case paging
  /// Exactly that of the lecture's app.
  case lecture

  /// What the server is started with.
  var options: [String] { ["--schema", rawValue] }
}
