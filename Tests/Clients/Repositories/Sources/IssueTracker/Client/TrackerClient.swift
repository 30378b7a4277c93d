public import Foundation
public import GraphQLClient

/// A client of the tracker's REST interface, which is independent of repositories.
public struct TrackerClient: Sendable {
  /// A page of a project's issues.
  public struct IssuesPage: Decodable, Sendable {
    /// The issues, the newest first.
    public let issues: [Issue]
    /// The cursor after which the next page begins; `nil` if there is none.
    public let next: String?
  }

  private struct NewSession: Decodable {
    let token: String
  }

  private let http: HTTPClient

  /// Creates a client.
  ///
  /// - Parameters:
  ///   - server: The URL of the server.
  ///   - transport: The transport of the requests.
  ///   - timeout: The time limit of each request.
  public init(
    server: URL, transport: any HTTPTransport = PlatformTransport(), timeout: Duration = .seconds(10)
  ) {
    http = HTTPClient(server, transport, timeout: timeout)
  }

  /// The session of the user.
  public var session: Session { http.session }

  /// Signs a user in.
  public func signIn(as user: String) async throws(TrackerError) {
    let reply = try await http.change("sessions", "POST", ["user": user], requestID: UUID().uuidString)
    session.signIn(token: try reply.decode(NewSession.self).token)
  }

  /// Fetches the page of a project's issues after a cursor, or the first page.
  public func issues(
    of project: String, after cursor: String?, limit: Int
  ) async throws(TrackerError) -> IssuesPage {
    var query = [URLQueryItem(name: "limit", value: "\(limit)")]
    if let cursor { query.append(URLQueryItem(name: "after", value: cursor)) }
    return try await http.get("projects/\(project)/issues", query: query).decode()
  }

  /// Fetches an issue, whose body the server sends only if it has changed since the last call.
  public func issue(_ id: Issue.ID) async throws(TrackerError) -> IssueDetail {
    try await IssueDetail(http.get("issues/\(id)"))
  }

  /// Creates an issue under the id that the app has chosen.
  public func create(
    _ issue: Issue, in project: String, requestID: String
  ) async throws(TrackerError) -> IssueDetail {
    let fields = ["id": issue.id, "title": issue.title]
    return try await IssueDetail(http.change("projects/\(project)/issues", "POST", fields, requestID: requestID))
  }

  /// Changes fields of an issue; if a version is given, only if the issue still has it.
  public func edit(
    _ id: Issue.ID, _ fields: [String: String], version: String? = nil, requestID: String
  ) async throws(TrackerError) -> IssueDetail {
    try await IssueDetail(http.change("issues/\(id)", "PATCH", fields, ifMatch: version, requestID: requestID))
  }

  /// Adds a comment to an issue.
  public func add(
    _ comment: IssueComment, to id: Issue.ID, requestID: String
  ) async throws(TrackerError) -> IssueDetail {
    let fields = ["id": comment.id, "text": comment.text]
    return try await IssueDetail(http.change("issues/\(id)/comments", "POST", fields, requestID: requestID))
  }

  /// Deletes an issue.
  public func delete(_ id: Issue.ID, requestID: String) async throws(TrackerError) {
    _ = try await http.change("issues/\(id)", "DELETE", requestID: requestID)
  }
}

extension IssueDetail {
  fileprivate init(_ reply: HTTPClient.Reply) throws(TrackerError) {
    self = try reply.decode()
    version = reply.etag
  }
}
