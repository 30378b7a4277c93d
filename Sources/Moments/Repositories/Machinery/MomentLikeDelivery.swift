internal import GraphQLClient
internal import Repository

/// Makes the attempts to bring likes to the server, for the queue of a ``MomentsRepo``.
struct MomentLikeDelivery: Sendable {
  let session: any UpdateMomentLikeSessionType
  let broadcast: MomentsBroadcast
  let fetcher: MomentsFetcher

  /// Sends a like, and answers when a timeline that contains it is stored.
  ///
  /// Only then may the like leave the queue: were the process to end before, nobody would show it any more. It also
  /// leaves where the server has answered and gives no timeline that can be used: to send it again would bring none
  /// either. Then it is shown until a timeline that was asked for later comes. Where not even what is fetched then can be
  /// decoded, it stays: who answers may not be the server.
  func send(_ like: MomentLike, idempotencyKey: String) async -> MutationOutcome<Void, MomentsRepoError> {
    let id = MutationID(rawValue: idempotencyKey)
    let (ticket, isFirstAttempt) = await broadcast.beginSending(like, as: id)
    // Nil where the server has answered, and what it says cannot be used.
    let details: MomentsDetails?
    do {
      details = try await session.updateLike(
        like.isLiked, momentID: like.momentID, fromUserID: like.userID, idempotencyKey: idempotencyKey)
    } catch {
      switch error.verdict {
      case .answered: details = nil
      case .notNow: return .retryLater(MomentsRepoError(error))
      case .never: return .refused(MomentsRepoError(error))
      }
    }

    do throws(MomentsRepoError) {
      if isFirstAttempt, let details,
        try await broadcast.save(
          MomentsReply(request: .whole, details: details), userID: like.userID, requestedAt: ticket, confirming: id)
      {
        return .delivered(())
      }
      // There is no reply, or it may be a repetition of an earlier one, or older than what is stored.
      try await confirm(like, as: id)
      return .delivered(())
    } catch {
      // Where a timeline with it is stored, observers get it once the store can be observed.
      if await broadcast.isSaved(like, as: id) { return .delivered(()) }
      switch error {
      case .session(.undecodable) where details == nil: return .retryLater(error)
      case .session(let failure) where failure.verdict != .notNow: return .delivered(())
      default: return .retryLater(error)
      }
    }
  }

  /// Shows a like as confirmed, and has a timeline stored that is asked for after that.
  private func confirm(_ like: MomentLike, as id: MutationID) async throws(MomentsRepoError) {
    await broadcast.confirm(like, as: id)
    do throws(MomentsRepoError) {
      try await fetcher.fetch(userID: like.userID)
    } catch {
      // It may have begun before, for others, and stored what it brought, though no observer could be told.
      guard case .store = error, await broadcast.needsFetch(like, as: id) else { throw error }
    }
    while await broadcast.needsFetch(like, as: id) { try await fetcher.fetch(userID: like.userID) }
  }
}

extension APISessionError {
  /// What a failed request says of the change it asked for.
  fileprivate enum Verdict {
    /// The server has answered with success, as it does when the change is made; what it says cannot be used.
    case answered
    /// The outcome is not known, or the server cannot just now: the same request may succeed later.
    case notNow
    /// The server refused, or the request cannot be sent.
    case never
  }

  fileprivate var verdict: Verdict {
    switch self {
    case .emptyReply, .replyTooLarge, .undecodable: .answered
    case .cancelled: .notNow
    default: isFinal ? .never : .notNow
    }
  }
}
