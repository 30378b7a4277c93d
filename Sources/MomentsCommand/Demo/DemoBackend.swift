import DataStore
import Foundation
import Moments

/// A backend within the program that behaves like the GraphQL server: the same data, errors, and rules of likes.
actor DemoBackend {
  /// Whether requests get through; while false each fails as without a network.
  private(set) var isOnline = true

  private static let key = StoreKey<[MomentsDetails]>("demo-server")

  private var timelines: [String: MomentsDetails]
  private let store: FileStore?
  private let latency: Duration
  private let withLikes: @Sendable () -> Bool

  /// Creates a backend with its own copy of the timelines.
  ///
  /// - Parameters:
  ///   - timelines: One for each user, with likes.
  ///   - latency: How long a request takes, before anything is looked up or changed.
  ///   - withLikes: Whether fetched timelines have likes; asked at each request.
  ///   - store: Where the backend keeps its timelines; nil for one that forgets.
  init(
    timelines: [MomentsDetails] = DemoData.timelines,
    latency: Duration = .zero,
    withLikes: @escaping @Sendable () -> Bool = { true },
    store: FileStore? = nil
  ) {
    self.store = store
    self.timelines = Dictionary(timelines.map { ($0.userDetails.id, $0) }, uniquingKeysWith: { _, last in last })
    self.latency = latency
    self.withLikes = withLikes
  }

  /// Opens a backend with the timelines it kept, or with the demonstration's where it kept none it can read.
  static func open(_ store: FileStore) async throws(StoreError) -> DemoBackend {
    do throws(StoreError) {
      return DemoBackend(timelines: try await store.load(key)?.value ?? DemoData.timelines, store: store)
    } catch {
      guard case .undecodable = error else { throw error }
      return DemoBackend(store: store)
    }
  }

  /// Connects the backend or cuts it off; a request under way meets the state at its end.
  func setOnline(_ isOnline: Bool) {
    self.isOnline = isOnline
  }

  private func reach() async throws(APISessionError) {
    do {
      // A latency of zero is no reason to be deaf to cancellation.
      try Task.checkCancellation()
      if latency > .zero { try await Task.sleep(for: latency) }
    } catch {
      throw .cancelled
    }
    guard isOnline else { throw .transport(URLError(.notConnectedToInternet)) }
  }

  private func timeline(of userID: String, field: String) throws(APISessionError) -> MomentsDetails {
    guard let timeline = timelines[userID] else {
      throw .refused(#"No user has the id "\#(userID)"."#, field: field)
    }
    return timeline
  }
}

extension DemoBackend: GetMomentsByUserIDSessionType {
  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    let withLikes = withLikes()
    try await reach()
    let timeline = try timeline(of: userID, field: "getMomentsDetailsByUserID")
    return withLikes ? timeline.withDerivedLikes : timeline.withoutLikes
  }
}

extension DemoBackend: UpdateMomentLikeSessionType {
  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await reach()
    var timeline = try timeline(of: userID, field: "updateMomentLike")
    guard let index = timeline.moments.firstIndex(where: { $0.id == momentID }) else {
      throw .refused(
        #"The timeline of user "\#(userID)" has no moment with the id "\#(momentID)"."#, field: "updateMomentLike")
    }
    timeline.moments[index].setLiked(isLiked, by: timeline.userDetails)
    timelines[userID] = timeline
    try await keep()
    return timeline.withDerivedLikes
  }

  /// Writes down what changed, as a server would before it answers.
  private func keep() async throws(APISessionError) {
    do {
      try await store?.save(timelines.values.sorted { $0.userDetails.id < $1.userDetails.id }, for: Self.key)
    } catch {
      throw .statusCode(500, bodyExcerpt: error.description)
    }
  }
}

extension APISessionError {
  fileprivate static func refused(_ message: String, field: String) -> APISessionError {
    .graphQL([GraphQLError(message: message, path: [.field(field)])])
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

  fileprivate var withoutLikes: MomentsDetails {
    var details = self
    for index in details.moments.indices {
      details.moments[index].isLiked = nil
      details.moments[index].likes = nil
    }
    return details
  }
}

extension MomentsDetails.Moment {
  fileprivate func isLiked(by user: MomentsDetails.UserDetails) -> Bool {
    likes?.contains { $0.id == user.id } ?? false
  }

  /// Adds the user's like after the others, or removes it; a repetition changes nothing.
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
