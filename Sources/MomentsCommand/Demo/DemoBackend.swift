import DataStore
import Foundation
import GraphQLClient
import Moments
import Repository

/// A backend within the program that behaves like the GraphQL server: the same data, errors, rules of likes, and one
/// reply for all attempts at a change under one key.
actor DemoBackend: NetworkSwitch {
  /// Whether requests get through; while false each fails as without a network.
  private(set) var isOnline = true

  private static let key = StoreKey<DemoServerState>("demo-server")

  /// What the backend has where nothing is kept.
  private var state: DemoServerState
  private let changes = AsyncSerialQueue()
  private let store: FileStore?
  private let latency: Duration
  private let withLikes: @Sendable () -> Bool

  /// Creates a backend with its own copy of the timelines.
  ///
  /// - Parameters:
  ///   - timelines: One for each user, with likes.
  ///   - latency: How long a request takes, before anything is looked up or changed.
  ///   - withLikes: Whether fetched timelines have likes; asked at each request.
  ///   - store: Where the backend keeps its timelines and replies; nil for one that forgets.
  init(
    timelines: [MomentsDetails] = DemoData.timelines,
    latency: Duration = .zero,
    withLikes: @escaping @Sendable () -> Bool = { true },
    store: FileStore? = nil
  ) {
    self.init(
      state: DemoServerState(timelines: timelines), latency: latency, withLikes: withLikes, store: store)
  }

  private init(
    state: DemoServerState, latency: Duration = .zero, withLikes: @escaping @Sendable () -> Bool = { true },
    store: FileStore?
  ) {
    self.state = state
    self.store = store
    self.latency = latency
    self.withLikes = withLikes
  }

  /// Opens a backend with what it kept, or with the demonstration's timelines where it kept nothing it can read.
  static func open(_ store: FileStore, latency: Duration = .zero) async throws(StoreError) -> DemoBackend {
    do throws(StoreError) {
      guard let kept = try await store.load(key) else {
        return DemoBackend(latency: latency, store: store)
      }
      return DemoBackend(state: kept.value, latency: latency, store: store)
    } catch {
      guard case .undecodable = error else { throw error }
      return DemoBackend(latency: latency, store: store)
    }
  }

  /// Connects the backend or cuts it off; a request in flight meets the state at its end.
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
}

extension DemoBackend: GetMomentsByUserIDSessionType {
  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    let withLikes = withLikes()
    try await reach()
    guard let timeline = try await kept().timeline(of: userID) else {
      throw .refused(DemoServerState.unknownUser(userID), field: "getMomentsDetailsByUserID")
    }
    return withLikes ? timeline : timeline.withoutLikes
  }
}

extension DemoBackend: UpdateMomentLikeSessionType {
  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await update(.init(momentID: momentID, userID: userID, isLiked: isLiked), key: nil)
  }

  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await update(.init(momentID: momentID, userID: userID, isLiked: isLiked), key: idempotencyKey)
  }

  private func update(_ change: DemoServerState.Change, key: String?) async throws(APISessionError) -> MomentsDetails {
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
    _ change: DemoServerState.Change, key: String?
  ) async throws(APISessionError) -> DemoServerState.Reply {
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
  private func kept() async throws(APISessionError) -> DemoServerState {
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
