public import Foundation

/// The state of one key: its value, the value's age, and the work in progress.
///
/// ```swift
/// for await state in comments.states(of: postID) {
///   switch state.presence {
///   case .value(let page): show(page.elements)
///   case .nothing: showPlaceholder(state.isLoading)
///   case .notRead: showFailure(state.failure)
///   }
/// }
/// ```
public struct RepositoryState<Value: Sendable, Failure: Error & Sendable>: Sendable {
  /// Whether a key has a value, as far as the repository knows.
  public enum Presence: Sendable {
    /// It isn't known whether there is a value, because the store wasn't read.
    ///
    /// Observers get such a state only with a ``RepositoryState/failure``: the store can't be read, or the user has
    /// signed out.
    case notRead

    /// The store was read, and there is no value.
    ///
    /// Mutations may be pending nevertheless: without ``MutableSource/empty``, they become visible once a value is
    /// stored.
    case nothing

    /// There is a value: the stored value, or ``MutableSource/empty``, with all pending mutations applied.
    case value(Value)
  }

  /// The value that observers see; `nil` if there is none, or the store wasn't read.
  ///
  /// It is the stored value with all pending mutations applied. If nothing is stored, the mutations are applied to
  /// ``MutableSource/empty``. See ``presence`` for the meaning of `nil`.
  public var value: Value? {
    didSet { if value != nil { isRead = true } }
  }

  /// Whether the store was read; always `true` if there is a value, so that equal states compare as equal.
  private var isRead: Bool

  /// Whether there is a value, there is none, or the store wasn't read.
  public var presence: Presence {
    if let value { .value(value) } else if isRead { .nothing } else { .notRead }
  }

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
  /// If ``presence`` is ``Presence/notRead``, this is the reason: the store can't be read, or the user has signed out.
  public var failure: Failure?

  /// Creates a state, for example to show before the first state arrives, or in a test double of a repository.
  ///
  /// - Parameters:
  ///   - value: The value that observers see; `nil` if there is none.
  ///   - isRead: Whether the store was read. Without a value, it decides whether ``presence`` is ``Presence/nothing``
  ///     or ``Presence/notRead``. With a value, it has no effect.
  ///   - fetchedAt: The time at which the value was fetched.
  ///   - isPending: Whether there are mutations that the stored value doesn't include yet.
  ///   - isLoading: Whether the value is being fetched.
  ///   - isLoadingMore: Whether the next page is being fetched.
  ///   - hasMore: Whether there is a next page.
  ///   - isLoadingPrevious: Whether the previous page is being fetched.
  ///   - hasPrevious: Whether there is a previous page.
  ///   - failure: The error of the last fetch, or the reason why the store wasn't read.
  public init(
    value: Value? = nil, isRead: Bool = false, fetchedAt: Date? = nil, isPending: Bool = false, isLoading: Bool = false,
    isLoadingMore: Bool = false, hasMore: Bool = false, isLoadingPrevious: Bool = false, hasPrevious: Bool = false,
    failure: Failure? = nil
  ) {
    self.value = value
    self.isRead = isRead || value != nil
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

extension RepositoryState.Presence: Equatable where Value: Equatable {}
extension RepositoryState.Presence: Hashable where Value: Hashable {}
extension RepositoryState: Equatable where Value: Equatable, Failure: Equatable {}
extension RepositoryState: Hashable where Value: Hashable, Failure: Hashable {}
