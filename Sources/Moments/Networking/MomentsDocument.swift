/// The GraphQL documents of the Moments feature, and the variables they take.
///
/// Both select the same fields, so that a reply to either is a whole ``MomentsDetails``.
enum MomentsDocument {
  enum GetMomentsDetailsByUserID {
    static let operationName = "getMomentsDetailsByUserID"

    /// The query, of the whole timeline or of a page of it.
    ///
    /// Likes are left out of the reply unless `withLikes` is true. Without `first` and `after` it is the whole timeline.
    static let text = """
      query \(operationName)($userID: ID!, $withLikes: Boolean!, $first: Int, $after: String) {
        getMomentsDetailsByUserID(userID: $userID, first: $first, after: $after) {
      \(selection(likesDirective: " @include(if: $withLikes)"))
        }
      }
      """

    struct Variables: Encodable, Sendable {
      let userID: String
      let withLikes: Bool
      /// Left out of the request where nil.
      var first: Int?
      var after: String?
    }

    struct Reply: Decodable, Sendable {
      let getMomentsDetailsByUserID: MomentsDetails
    }
  }

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

  private static func selection(likesDirective: String) -> String {
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
          url
          photos
          createdDate
          isLiked\(likesDirective)
          likes\(likesDirective) {
            id
            avatar
          }
        }
        pageInfo {
          endCursor
          hasNextPage
        }
    """
  }
}
