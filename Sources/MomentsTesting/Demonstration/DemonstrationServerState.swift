internal import GraphQLClient
internal import Moments

/// What a ``DemonstrationServer`` keeps: the timelines, and its replies to the changes that came under a key.
///
/// Both are one value, so that a change and the reply to it become durable together.
struct DemonstrationServerState: Codable, Equatable, Sendable {
  /// The most replies that are kept; each is a whole timeline, and beyond this the oldest is forgotten.
  static let maximumReplyCount = 64

  /// The most characters a key has.
  static let maximumKeyLength = 255

  /// What a request asks for, which distinguishes a repetition from another request.
  struct Change: Codable, Equatable, Sendable {
    var momentID: String
    var userID: String
    var isLiked: Bool
  }

  /// The reply to a change.
  enum Reply: Codable, Equatable, Sendable {
    case made(MomentsDetails)
    case refused(message: String)
  }

  private struct KeptReply: Codable, Equatable, Sendable {
    let key: String
    let change: Change
    let reply: Reply
  }

  /// The timeline of each user, by id.
  private var timelines: [String: MomentsDetails]
  /// Oldest first.
  private var keptReplies: [KeptReply] = []

  init(timelines: [MomentsDetails]) {
    self.timelines = Dictionary(timelines.map { ($0.userDetails.id, $0) }, uniquingKeysWith: { _, last in last })
  }

  /// A user's timeline, with likes; nil for an unknown user.
  func timeline(of userID: String) -> MomentsDetails? {
    timelines[userID]?.withDerivedLikes
  }

  /// Makes a change, or gives the reply kept under its key.
  ///
  /// - Parameters:
  ///   - change: What to do.
  ///   - key: The same for each attempt at one change; nil for a change that is made each time.
  /// - Returns: The reply, the same for each attempt under one key.
  /// - Throws: The status with which a server answers a key that belongs to another change, or that is no key.
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
    return .made(timeline.withDerivedLikes)
  }

  static func unknownUser(_ userID: String) -> String {
    #"No user has the id "\#(userID)"."#
  }
}

extension APISessionError {
  /// A status with the body in which the GraphQL server says why.
  fileprivate static func status(_ code: Int, _ message: String) -> APISessionError {
    let escaped = message.replacing("\\", with: #"\\"#).replacing("\"", with: #"\""#)
    return .statusCode(code, bodyExcerpt: #"{"errors":[{"message":"\#(escaped)"}]}"#)
  }
}

extension MomentsDetails {
  /// With `isLiked` as it follows from the likes.
  fileprivate var withDerivedLikes: MomentsDetails {
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

  /// Adds the user's like after the existing ones, or removes it; a repetition changes nothing.
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
