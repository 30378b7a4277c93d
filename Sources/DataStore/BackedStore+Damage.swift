internal import Multicast

extension BackedStore {
  /// Does something that may find the whole store damaged; then an empty one has taken its place, and it is done again.
  func againIfDamaged<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    do throws(StoreError) {
      return try tellingDamage(body)
    } catch {
      guard case .damaged = error else { throw error }
      return try tellingDamage(body)
    }
  }

  /// Does something that may find the whole store damaged; then there is an event, and nothing is stored any more.
  func tellingDamage<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    do throws(StoreError) {
      return try body()
    } catch {
      if case .damaged(let movedTo, let reason) = error {
        for topic in topics.values { forgetEverybody(in: topic) }
        eventRelay.send(.damagedStoreMovedAside(movedTo: movedTo, reason: reason))
      }
      throw error
    }
  }

  private func forgetEverybody(in topic: some AnyTopic) {
    topic.typed.forgetEverybody()
  }
}
