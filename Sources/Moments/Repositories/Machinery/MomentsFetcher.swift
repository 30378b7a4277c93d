internal import DataStore
internal import GraphQLClient
internal import Repository

/// Fetches timelines and has them stored: one request for all who want the same at the same time.
struct MomentsFetcher: Sendable {
  /// Which part of whose timeline is fetched.
  private struct Key: Hashable, Sendable, CustomStringConvertible {
    let userID: String
    let part: MomentsTimeline.Part

    var description: String {
      switch part {
      case .whole: userID
      case .newestPage: "\(userID) (newest page)"
      case .nextPage: "\(userID) (next page)"
      }
    }
  }

  private let session: any GetMomentsByUserIDSessionType
  private let pageSize: Int
  private let broadcast: MomentsBroadcast
  private let requests: SharedRequests<Key, Bool, MomentsRepoError>
  private let events: RepositoryEvents

  init(
    session: any GetMomentsByUserIDSessionType, pageSize: Int, broadcast: MomentsBroadcast, events: RepositoryEvents
  ) {
    self.session = session
    self.pageSize = pageSize
    self.broadcast = broadcast
    self.events = events
    requests = SharedRequests(events: events)
  }

  /// Fetches a part of the timeline of a user, and returns when it is stored and sent to the observers.
  ///
  /// - Returns: Whether the server was asked; it is not where there is no next page.
  @discardableResult
  func fetch(_ part: MomentsTimeline.Part = .whole, userID: String) async throws(MomentsRepoError) -> Bool {
    try broadcast.validate(userID: userID)
    let key = Key(userID: userID, part: part)
    do throws(SharedRequestError<MomentsRepoError>) {
      return try await requests.value(for: key) { () async throws(MomentsRepoError) in try await load(key) }
    } catch {
      switch error {
      case .failed(let error): throw error
      case .cancelled: throw .cancelled
      }
    }
  }

  private func load(_ key: Key) async throws(MomentsRepoError) -> Bool {
    guard var request = try await nextRequest(key) else {
      try await broadcast.open()
      return false
    }
    let load = try await broadcast.beginLoading(key.part, userID: key.userID)
    do throws(MomentsRepoError) {
      // A reply that may be older than what was stored meanwhile is no news: then the next one is.
      while try await !store(request, userID: key.userID) {
        events.emit(.replyDiscarded(key: "\(key)"))
        guard let next = try await nextRequest(key) else { break }
        request = next
      }
      await broadcast.endLoading(load, userID: key.userID)
      return true
    } catch {
      await broadcast.endLoading(load, userID: key.userID, error: error)
      throw error
    }
  }

  /// What to ask for as things stand; nil when there is nothing to load.
  private func nextRequest(_ key: Key) async throws(MomentsRepoError) -> MomentsRequest? {
    switch key.part {
    case .whole: return .whole
    case .newestPage: return .newestPage
    case .nextPage:
      guard let stored = try await broadcast.stored(userID: key.userID) else { return .newestPage }
      return stored.value.nextCursor.map { .nextPage(after: $0) }
    }
  }

  private func store(_ request: MomentsRequest, userID: String) async throws(MomentsRepoError) -> Bool {
    let ticket = await broadcast.beginRequest(userID: userID)
    let details: MomentsDetails
    do {
      details =
        switch request {
        case .whole: try await session.getMoments(userID: userID)
        case .newestPage: try await session.getMoments(userID: userID, first: pageSize, after: nil)
        case .nextPage(let cursor): try await session.getMoments(userID: userID, first: pageSize, after: cursor)
        }
    } catch {
      if case .nextPage(let cursor) = request, error.isFinal {
        await broadcast.refuseNextPage(after: cursor, userID: userID)
      }
      throw MomentsRepoError(error)
    }
    return try await broadcast.save(
      MomentsReply(request: request, details: details), userID: userID, requestedAt: ticket)
  }
}
