public import Foundation

/// Whether a read has to ask for a newer value than the stored one: stale while revalidate, as a decision.
///
/// In every case what is stored is shown first. Ask by ``SharedRequests``, so that many readers make one request.
public enum Revalidation: Hashable, Sendable {
  /// The stored value is fresh: nothing is asked for.
  case notNeeded

  /// The stored value is stale: it is good enough to show while a newer one is asked for.
  case whileShowingStored

  /// Nothing is stored: there is nothing to show until the request is over.
  case beforeShowing
}

extension Freshness {
  /// What a read has to do.
  ///
  /// - Parameters:
  ///   - savedAt: When the stored value was saved; nil when nothing is stored.
  ///   - now: The present time.
  public func revalidation(savedAt: Date?, now: Date) -> Revalidation {
    guard let savedAt else { return .beforeShowing }
    return isFresh(savedAt: savedAt, now: now) ? .notNeeded : .whileShowingStored
  }
}
