public import Foundation

/// What there is to show of one key: the value, its age, and what is being done about it.
public struct RepositoryState<Value: Sendable, Failure: Error & Sendable>: Sendable {
  /// The stored value with all pending mutations over it; `nil` if there is none.
  public var value: Value?

  /// When the value was fetched.
  ///
  /// After a relaunch, the time of its last save.
  public var fetchedAt: Date?

  /// Whether the user has made a change that the stored value doesn't have, also where there is no value.
  public var isPending: Bool

  /// Whether the value is being fetched.
  public var isLoading: Bool

  /// Whether the next page is being fetched.
  public var isLoadingMore: Bool

  /// Whether there is a next page.
  public var hasMore: Bool

  /// Whether the previous page is being fetched; see ``BidirectionalPagedSource``.
  public var isLoadingPrevious: Bool

  /// Whether there is a previous page.
  public var hasPrevious: Bool

  /// Why the last fetch failed; `nil` if it didn't, or if another one succeeded or is in flight since.
  public var failure: Failure?

  /// Creates a state.
  public init(
    value: Value? = nil, fetchedAt: Date? = nil, isPending: Bool = false, isLoading: Bool = false,
    isLoadingMore: Bool = false, hasMore: Bool = false, isLoadingPrevious: Bool = false, hasPrevious: Bool = false,
    failure: Failure? = nil
  ) {
    self.value = value
    self.fetchedAt = fetchedAt
    self.isPending = isPending
    self.isLoading = isLoading
    self.isLoadingMore = isLoadingMore
    self.hasMore = hasMore
    self.isLoadingPrevious = isLoadingPrevious
    self.hasPrevious = hasPrevious
    self.failure = failure
  }
}

extension RepositoryState: Equatable where Value: Equatable, Failure: Equatable {}
extension RepositoryState: Hashable where Value: Hashable, Failure: Hashable {}
