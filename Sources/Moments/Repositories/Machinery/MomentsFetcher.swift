internal import Repository

/// Fetches timelines and has them stored: one request for all who want the same at the same time.
struct MomentsFetcher: Sendable {
  private let session: any GetMomentsByUserIDSessionType
  private let broadcast: MomentsBroadcast
  private let requests: SharedRequests<String, Void, MomentsRepoError>
  private let events: RepositoryEvents

  init(session: any GetMomentsByUserIDSessionType, broadcast: MomentsBroadcast, events: RepositoryEvents) {
    self.session = session
    self.broadcast = broadcast
    self.events = events
    requests = SharedRequests(events: events)
  }

  /// Fetches the timeline of a user, and returns when it is stored and sent to the observers.
  func fetch(userID: String) async throws(MomentsRepoError) {
    do throws(SharedRequestError<MomentsRepoError>) {
      try await requests.value(for: userID) { () async throws(MomentsRepoError) in try await load(userID: userID) }
    } catch {
      switch error {
      case .failed(let error): throw error
      case .cancelled: throw .cancelled
      }
    }
  }

  private func load(userID: String) async throws(MomentsRepoError) {
    let load = await broadcast.beginLoading(userID: userID)
    do throws(MomentsRepoError) {
      // A reply that may be older than what was stored meanwhile is no news: then the next one is.
      while try await !store(userID: userID) { events.emit(.replyDiscarded(key: userID)) }
      await broadcast.endLoading(load, userID: userID)
    } catch {
      await broadcast.endLoading(load, userID: userID, error: error)
      throw error
    }
  }

  private func store(userID: String) async throws(MomentsRepoError) -> Bool {
    let ticket = await broadcast.beginRequest(userID: userID)
    let details: MomentsDetails
    do {
      details = try await session.getMoments(userID: userID)
    } catch {
      throw MomentsRepoError(error)
    }
    return try await broadcast.save(details, userID: userID, requestedAt: ticket)
  }
}
