public import DataStore
internal import Foundation
public import GraphQLClient
public import Moments
internal import Repository

/// A server within the program that behaves like a GraphQL server: it has two timelines, the same errors and rules of
/// likes, and one reply for all attempts at a change under one key.
///
/// For demonstrations and previews, and for tests that need a server with a memory. A `MomentsRepo` takes it for both of its
/// sessions.
public actor DemonstrationServer {
  /// Whether requests get through; while it is `false`, each fails as without a network.
  public private(set) var isOnline = true

  private static let key = StoreKey<DemonstrationServerState>("demo-server")

  /// What the server has where nothing is kept.
  private var state: DemonstrationServerState
  private let changes = AsyncSerialQueue()
  private let store: FileStore?
  private let latency: Duration
  private let withLikes: @Sendable () -> Bool

  /// Creates a server with its own copy of the timelines.
  ///
  /// - Parameters:
  ///   - timelines: One for each user, with likes; `nil` for the demonstration's.
  ///   - latency: How long a request takes, before anything is looked up or changed.
  ///   - withLikes: Whether fetched timelines have likes; asked at each request.
  ///   - store: Where the server keeps its timelines and replies; `nil` for one that forgets.
  public init(
    timelines: [MomentsDetails]? = nil,
    latency: Duration = .zero,
    withLikes: @escaping @Sendable () -> Bool = { true },
    store: FileStore? = nil
  ) {
    self.init(
      state: DemonstrationServerState(timelines: timelines ?? DemonstrationData.timelines), latency: latency,
      withLikes: withLikes, store: store)
  }

  private init(
    state: DemonstrationServerState, latency: Duration = .zero, withLikes: @escaping @Sendable () -> Bool = { true },
    store: FileStore?
  ) {
    self.state = state
    self.store = store
    self.latency = latency
    self.withLikes = withLikes
  }

  /// Opens a server with what it kept, or with the demonstration's timelines where it kept nothing it can read.
  public static func open(_ store: FileStore, latency: Duration = .zero) async throws(StoreError) -> DemonstrationServer
  {
    do throws(StoreError) {
      guard let kept = try await store.load(key) else {
        return DemonstrationServer(latency: latency, store: store)
      }
      return DemonstrationServer(state: kept.value, latency: latency, store: store)
    } catch {
      guard case .undecodable = error else { throw error }
      return DemonstrationServer(latency: latency, store: store)
    }
  }

  /// Connects the server or cuts it off; a request in flight meets the state at its end.
  public func setOnline(_ isOnline: Bool) {
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
}

extension DemonstrationServer: GetMomentsByUserIDSessionType {
  /// Returns a timeline as a server would.
  public func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    let withLikes = withLikes()
    try await reach()
    guard let timeline = try await kept().timeline(of: userID) else {
      throw .refused(DemonstrationServerState.unknownUser(userID), field: "getMomentsDetailsByUserID")
    }
    return withLikes ? timeline : timeline.withoutLikes
  }
}

extension DemonstrationServer: UpdateMomentLikeSessionType {
  /// Makes a change each time.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await update(.init(momentID: momentID, userID: userID, isLiked: isLiked), key: nil)
  }

  /// Makes a change once for each key.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await update(.init(momentID: momentID, userID: userID, isLiked: isLiked), key: idempotencyKey)
  }

  private func update(_ change: DemonstrationServerState.Change, key: String?) async throws(APISessionError)
    -> MomentsDetails
  {
    try await reach()
    // Each is made on what the one before it has kept.
    let reply = try await changes.run { () async throws(APISessionError) in try await make(change, key: key) }
    switch reply {
    case .made(let details): return details
    case .refused(let message): throw .refused(message, field: "updateMomentLike")
    }
  }

  /// Makes a change, and writes it down, as a server would before it answers.
  private func make(
    _ change: DemonstrationServerState.Change, key: String?
  ) async throws(APISessionError) -> DemonstrationServerState.Reply {
    var changed = try await kept()
    let reply = try changed.reply(to: change, key: key)
    do throws(StoreError) {
      try await store?.save(changed, for: Self.key)
    } catch {
      throw .statusCode(500, bodyExcerpt: error.description)
    }
    state = changed
    return reply
  }

  /// What is kept now: other processes with the same folder have the same server.
  private func kept() async throws(APISessionError) -> DemonstrationServerState {
    do throws(StoreError) {
      return try await store?.load(Self.key)?.value ?? state
    } catch {
      if case .undecodable = error { return state }
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
  fileprivate var withoutLikes: MomentsDetails {
    var details = self
    for index in details.moments.indices {
      details.moments[index].isLiked = nil
      details.moments[index].likes = nil
    }
    return details
  }
}
