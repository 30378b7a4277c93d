internal import Foundation
internal import GraphQLClient
internal import Moments

/// The state of a ``DemonstrationServer``: the timelines, and the replies to changes that were requested under a key.
///
/// Timelines and replies are stored as one value, so a change and its reply become durable together.
struct DemonstrationServerState: Codable, Equatable, Sendable {
  /// The maximum number of kept replies, each of which may be a complete timeline.
  ///
  /// Beyond it, the oldest reply is discarded.
  static let maximumReplyCount = 64

  /// The maximum number of characters of a key, as on the GraphQL server of the tests.
  static let maximumKeyLength = 255

  /// A requested change: whether a user likes a moment from now on.
  ///
  /// A repeated request under the same key has an equal change.
  struct Change: Codable, Equatable, Sendable {
    var momentID: String
    var userID: String
    var isLiked: Bool
  }

  /// The reply to a change.
  enum Reply: Codable, Equatable, Sendable {
    /// The change was made, and resulted in this timeline of the user.
    case made(MomentsDetails)
    /// The change wasn't made, for the reason that the message states.
    case refused(message: String)
  }

  private struct KeptReply: Codable, Equatable, Sendable {
    let key: String
    let change: Change
    let reply: Reply
  }

  /// The timeline of each user, by id.
  private var timelines: [String: MomentsDetails]
  /// The kept replies, oldest first.
  private var keptReplies: [KeptReply] = []

  init(timelines: [MomentsDetails]) {
    self.timelines = Dictionary(timelines.map { ($0.userDetails.id, $0) }, uniquingKeysWith: { _, last in last })
  }

  /// Returns a user's timeline with `isLiked` derived from the likes, or `nil` if the user is unknown.
  func timeline(of userID: String) -> MomentsDetails? {
    timelines[userID]?.withDerivedIsLiked
  }

  /// Makes a change, or returns the kept reply to an earlier attempt under the same key.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - key: The key of the change, the same for all attempts; `nil` to make the change unconditionally.
  /// - Returns: The reply, the same for all attempts under one key as long as the reply is kept.
  /// - Throws: The status 422 if the key belongs to another change, or 400 if its length isn't valid.
  mutating func reply(to change: Change, key: String?) throws(APISessionError) -> Reply {
    guard let key else { return make(change) }
    guard (1...Self.maximumKeyLength).contains(key.count) else {
      throw .status(400, "An Idempotency-Key has 1 to \(Self.maximumKeyLength) characters.")
    }
    if let kept = keptReplies.first(where: { $0.key == key }) {
      guard kept.change == change else {
        throw .status(
          422, #"The Idempotency-Key "\#(key)" belongs to another request. Give each change its own key."#)
      }
      return kept.reply
    }
    let reply = make(change)
    keptReplies.append(KeptReply(key: key, change: change, reply: reply))
    keptReplies.removeFirst(max(0, keptReplies.count - Self.maximumReplyCount))
    return reply
  }

  private mutating func make(_ change: Change) -> Reply {
    guard var timeline = timelines[change.userID] else {
      return .refused(message: Self.unknownUser(change.userID))
    }
    guard let index = timeline.moments.firstIndex(where: { $0.id == change.momentID }) else {
      return .refused(
        message: #"The timeline of user "\#(change.userID)" has no moment with the id "\#(change.momentID)"."#)
    }
    timeline.moments[index].setLiked(change.isLiked, by: timeline.userDetails)
    timelines[change.userID] = timeline
    return .made(timeline.withDerivedIsLiked)
  }

  /// Returns the message for a request whose user is unknown.
  static func unknownUser(_ userID: String) -> String {
    #"No user has the id "\#(userID)"."#
  }
}

extension APISessionError {
  /// Returns a status error whose body has the message in the format of the GraphQL server.
  fileprivate static func status(_ code: Int, _ message: String) -> APISessionError {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    // Encoding never fails, because every string can be encoded.
    let body = try! encoder.encode(["errors": [["message": message]]])
    return .statusCode(code, bodyExcerpt: String(decoding: body, as: UTF8.self))
  }
}

extension MomentsDetails {
  /// The timeline with `isLiked` derived from the likes.
  fileprivate var withDerivedIsLiked: MomentsDetails {
    var details = self
    for index in details.moments.indices {
      details.moments[index].isLiked = details.moments[index].isLiked(by: userDetails)
    }
    return details
  }
}

extension MomentsDetails.Moment {
  fileprivate func isLiked(by user: MomentsDetails.UserDetails) -> Bool {
    likes?.contains { $0.id == user.id } ?? false
  }

  /// Appends the user's like if `isLiked` is `true`, and removes it otherwise, unless that is already so.
  fileprivate mutating func setLiked(_ isLiked: Bool, by user: MomentsDetails.UserDetails) {
    guard isLiked != self.isLiked(by: user) else { return }
    var likes = likes ?? []
    if isLiked {
      likes.append(Like(id: user.id, avatar: user.avatar))
    } else {
      likes.removeAll { $0.id == user.id }
    }
    self.likes = likes
  }
}
