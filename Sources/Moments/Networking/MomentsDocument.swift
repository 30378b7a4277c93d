/// The GraphQL documents of the Moments feature, and their variables.
///
/// The query of a complete timeline and the mutation have the same fields as in the RxSwift app that this feature
/// replaces, so a server with that app's schema answers them. Only ``Page`` requests fields that such a server doesn't
/// have.
enum MomentsDocument {
  /// The query of a complete timeline.
  ///
  /// The reply excludes likes unless `withLikes` is true.
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

  /// The query of a page of a timeline, including the URLs of links.
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
      /// The cursor; omitted from the request if it is `nil`.
      let after: String?
    }

    typealias Reply = GetMomentsDetailsByUserID.Reply
  }

  /// The mutation that likes or unlikes a moment.
  ///
  /// The reply is the complete timeline, including likes.
  enum UpdateMomentLike {
    static let operationName = "updateMomentLike"
    /// The name of the field that makes the change.
    static let field = "updateMomentLike"

    static let text = """
      mutation \(operationName)($momentID: ID!, $userID: ID!, $isLiked: Boolean!) {
        \(field)(momentID: $momentID, userID: $userID, isLiked: $isLiked) {
      \(selection(likesDirective: ""))
        }
      }
      """

    struct Variables: Encodable, Sendable {
      let momentID: String
      let userID: String
      let isLiked: Bool
    }

    /// The timeline is `MomentsDetails`, or a `GraphQLField` of it for a caller that must know whether the change was
    /// made.
    struct Reply<Timeline: Decodable & Sendable>: Decodable, Sendable {
      let updateMomentLike: Timeline
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
