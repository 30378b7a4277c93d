internal import Repository

/// Makes the attempts to bring likes to the server, for the queue of a ``MomentsRepo``.
struct MomentLikeDelivery: Sendable {
  let session: any UpdateMomentLikeSessionType
  let broadcast: MomentsBroadcast
  let fetcher: MomentsFetcher

  /// Sends a like, and answers when a timeline that contains it is stored.
  ///
  /// Only then may the like leave the queue: were the process to end before, nobody would show it any more.
  func send(_ like: MomentLike, idempotencyKey: String) async -> MutationOutcome<Void, MomentsRepoError> {
    let id = MutationID(rawValue: idempotencyKey)
    let (ticket, isFirstAttempt) = await broadcast.beginSending(like, as: id)
    let details: MomentsDetails
    do {
      details = try await session.updateLike(
        like.isLiked, momentID: like.momentID, fromUserID: like.userID, idempotencyKey: idempotencyKey)
    } catch {
      if error.isTransient || error == .cancelled { return .retryLater(MomentsRepoError(error)) }
      return .refused(.session(error))
    }

    do throws(MomentsRepoError) {
      if isFirstAttempt,
        try await broadcast.save(
          MomentsReply(request: .whole, details: details), userID: like.userID, requestedAt: ticket, confirming: id)
      {
        return .delivered(())
      }
      // The reply may be a repetition of an earlier one, or older than what is stored.
      await broadcast.confirm(like, as: id)
      repeat {
        try await fetcher.fetch(userID: like.userID)
      } while await broadcast.needsFetch(like, as: id)
      return .delivered(())
    } catch {
      // Where a timeline with it is stored, observers get it once the store can be observed.
      return await broadcast.isSaved(like, as: id) ? .delivered(()) : .retryLater(error)
    }
  }
}
