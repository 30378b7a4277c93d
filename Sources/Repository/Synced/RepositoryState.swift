public import Foundation

/// The state of one key: its value, the value's age, and the work in progress.
public struct RepositoryState<Value: Sendable, Failure: Error & Sendable>: Sendable {
  /// The value that observers see; `nil` if there is none.
  ///
  /// It is the stored value with all pending mutations applied. If nothing is stored, the mutations are applied to
  /// ``MutableSource/empty``.
  public var value: Value?

  /// The time at which the value was fetched; `nil` if nothing is stored.
  ///
  /// If the repository doesn't know that time, for example after a relaunch or because another repository stored the
  /// value, this is the time at which the value was last saved.
  public var fetchedAt: Date?

  /// Whether there are mutations that the stored value doesn't include yet.
  ///
  /// It can be `true` even if ``value`` is `nil`.
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

  /// The error of the fetch that ended last; `nil` if it succeeded, or as soon as another fetch begins.
  ///
  /// If the value can't be shown, this is the reason: the store can't be read, or the user has signed out.
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
