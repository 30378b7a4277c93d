public import DataStore
internal import Foundation
public import GraphQLClient
public import Moments
internal import Repository

/// An in-process server that behaves like the GraphQL server of the tests.
///
/// It has the same errors and rules for likes, and by default serves the same two timelines. A change that is sent
/// again under the same key gets the same reply, if that is one of the last 64. Use the server for demonstrations and
/// previews, and for tests that need a stateful server. Pass it to a `MomentsRepo` as both of its sessions.
public actor DemonstrationServer {
  /// Whether the server can be reached; if not, each request fails as if there were no network.
  public private(set) var isOnline = true

  private static let stateKey = StoreKey<DemonstrationServerState>("demo-server")

  /// The state of the server.
  ///
  /// If there is a store, the stored state is used instead, unless none is stored or it can't be decoded.
  private var state: DemonstrationServerState
  private let changeQueue = AsyncSerialQueue()
  private let store: FileStore?
  private let latency: Duration
  private let includesLikes: @Sendable () -> Bool

  /// Creates a server with its own copy of the timelines.
  ///
  /// - Parameters:
  ///   - timelines: The timelines, one for each user, including likes; `nil` for the demonstration data. Ignored if
  ///     `store` has the state of a server.
  ///   - latency: The delay of each request, before the server reads or changes anything.
  ///   - withLikes: A closure that returns whether a fetched timeline includes likes; called for each fetch.
  ///   - store: The store that keeps the timelines and replies; `nil` to keep them in memory only.
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
    self.includesLikes = withLikes
  }

  /// Opens a server with its stored state, or with the demonstration data if no state is stored or it can't be decoded.
  ///
  /// - Parameters:
  ///   - store: The store that keeps the timelines and replies.
  ///   - latency: The delay of each request, before the server reads or changes anything.
  /// - Throws: A `StoreError` if the state can't be read, or if it is of a future format.
  public static func open(_ store: FileStore, latency: Duration = .zero) async throws(StoreError) -> DemonstrationServer
  {
    do throws(StoreError) {
      guard let stored = try await store.load(stateKey) else {
        return DemonstrationServer(latency: latency, store: store)
      }
      return DemonstrationServer(state: stored.value, latency: latency, store: store)
    } catch {
      guard case .undecodable = error else { throw error }
      return DemonstrationServer(latency: latency, store: store)
    }
  }

  /// Connects or disconnects the server.
  ///
  /// A request in flight fails if the server is disconnected when the latency of the request ends.
  public func setOnline(_ isOnline: Bool) {
    self.isOnline = isOnline
  }

  private func reach() async throws(APISessionError) {
    do {
      // Respects cancellation even if the latency is zero.
      try Task.checkCancellation()
      if latency > .zero { try await Task.sleep(for: latency) }
    } catch {
      throw .cancelled
    }
    guard isOnline else { throw .transport(URLError(.notConnectedToInternet)) }
  }
}

extension DemonstrationServer: GetMomentsByUserIDSessionType {
  /// Returns the timeline of a user.
  public func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    let hasLikes = includesLikes()
    try await reach()
    guard let timeline = try await currentState().state.timeline(of: userID) else {
      throw .refused(DemonstrationServerState.unknownUser(userID), field: "getMomentsDetailsByUserID")
    }
    return hasLikes ? timeline : timeline.withoutLikes
  }
}

extension DemonstrationServer: UpdateMomentLikeSessionType {
  /// Makes a change without a key, so a repeated call makes it again.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await update(.init(momentID: momentID, userID: userID, isLiked: isLiked), key: nil)
  }

  /// Makes a change under a key, or returns the stored reply to an earlier attempt under the same key.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await update(.init(momentID: momentID, userID: userID, isLiked: isLiked), key: idempotencyKey)
  }

  private func update(_ change: DemonstrationServerState.Change, key: String?) async throws(APISessionError)
    -> MomentsDetails
  {
    try await reach()
    // The changes of this object are made one at a time, so that each begins with the result of the previous one.
    let reply = try await changeQueue.run { () async throws(APISessionError) in try await make(change, key: key) }
    switch reply {
    case .made(let details): return details
    case .refused(let message): throw .refused(message, field: "updateMomentLike")
    }
  }

  /// Makes a change, and stores it before the reply is returned.
  ///
  /// If another server on the same store has stored a change meanwhile, makes this change again on the new state.
  private func make(
    _ change: DemonstrationServerState.Change, key: String?
  ) async throws(APISessionError) -> DemonstrationServerState.Reply {
    while true {
      var (newState, tag) = try await currentState()
      let reply = try newState.reply(to: change, key: key)
      var batch = StoreBatch()
      batch.save(newState, for: Self.stateKey)
      batch.requireFound(tag, of: Self.stateKey)
      do throws(StoreError) {
        try await store?.commit(batch)
        state = newState
        return reply
      } catch {
        if case .preconditionFailed = error { continue }
        throw .statusCode(500, bodyExcerpt: error.description)
      }
    }
  }

  /// Returns the stored state and its tag, or ``state`` without a tag if no state that can be decoded is stored.
  ///
  /// Reads the store each time, because another server on the same store may have changed the state.
  private func currentState() async throws(APISessionError) -> (state: DemonstrationServerState, tag: StoreTag?) {
    do throws(StoreError) {
      let stored = try await store?.load(Self.stateKey)
      return (stored?.value ?? state, stored?.tag)
    } catch {
      // The store has quarantined the bytes, or quarantines them when the next change is stored.
      if case .undecodable = error { return (state, nil) }
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
