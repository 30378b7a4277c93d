/// The GraphQL documents of the Moments feature, and the variables they take.
///
/// The query of a whole timeline and the mutation are those of the lecture's app, field by field, so that a server with
/// its schema answers them. Only ``Page`` asks for what such a server does not have.
enum MomentsDocument {
  /// A whole timeline.
  ///
  /// Likes are left out of the reply unless `withLikes` is true.
  enum GetMomentsDetailsByUserID {
    static let operationName = "getMomentsDetailsByUserID"

    static let text = """
      query \(operationName)($userID: ID!, $withLikes: Boolean!) {
        getMomentsDetailsByUserID(userID: $userID) {
      \(selection(likesDirective: " @include(if: $withLikes)"))
        }
      }
      """

    struct Variables: Encodable, Sendable {
      let userID: String
      let withLikes: Bool
    }

    struct Reply: Decodable, Sendable {
      let getMomentsDetailsByUserID: MomentsDetails
    }
  }

  /// A page of a timeline, with the addresses of links.
  enum Page {
    static let operationName = "getMomentsPage"

    static let text = """
      query \(operationName)($userID: ID!, $withLikes: Boolean!, $first: Int!, $after: String) {
        getMomentsDetailsByUserID(userID: $userID, first: $first, after: $after) {
      \(selection(likesDirective: " @include(if: $withLikes)", isPage: true))
        }
      }
      """

    struct Variables: Encodable, Sendable {
      let userID: String
      let withLikes: Bool
      let first: Int
      /// Left out of the request where nil.
      let after: String?
    }

    typealias Reply = GetMomentsDetailsByUserID.Reply
  }

  /// A like or an unlike.
  ///
  /// The reply is the whole timeline, with likes.
  enum UpdateMomentLike {
    static let operationName = "updateMomentLike"

    static let text = """
      mutation \(operationName)($momentID: ID!, $userID: ID!, $isLiked: Boolean!) {
        updateMomentLike(momentID: $momentID, userID: $userID, isLiked: $isLiked) {
      \(selection(likesDirective: ""))
        }
      }
      """

    struct Variables: Encodable, Sendable {
      let momentID: String
      let userID: String
      let isLiked: Bool
    }

    struct Reply: Decodable, Sendable {
      let updateMomentLike: MomentsDetails
    }
  }

  private static func selection(likesDirective: String, isPage: Bool = false) -> String {
    """
        userDetails {
          id
          name
          avatar
          backgroundImage
        }
        moments {
          id
          userDetails {
            name
            avatar
          }
          type
          title
          photos
          createdDate
          isLiked\(likesDirective)
          likes\(likesDirective) {
            id
            avatar
          }\(isPage ? "\n      url" : "")
        }\(isPage ? "\n    pageInfo {\n      endCursor\n      hasNextPage\n    }" : "")
    """
  }
}
