/// An issue, as lists show it.
public struct Issue: Codable, Equatable, Identifiable, Sendable {
  /// The state of an issue.
  public enum State: String, Codable, Sendable {
    case open, closed
  }

  /// The id, which the app assigns, so that an issue has one before it reaches the server.
  public let id: String
  /// The number, which the server assigns; `nil` until then.
  public var number: Int?
  /// The title.
  public var title: String
  /// The state.
  public var state: State
  /// The reason for the present state.
  public var reason: String?
  /// The number of comments.
  public var commentCount: Int

  /// Creates a new issue.
  public init(id: String, title: String) {
    (self.id, self.title) = (id, title)
    (state, commentCount) = (.open, 0)
  }
}
