public import Foundation
internal import Multicast
public import Observation
internal import Repository

/// The timeline screen: the profile and the moments of a user, how old they are, whether they load, and whether that
/// failed.
///
/// ```swift
/// .task { await viewModel.run() }
/// .refreshable { await viewModel.loadItems() }
/// ```
///
/// While ``run()`` is awaited, everything here shows what the repository has, whichever screen or process made a
/// change.
@MainActor
@Observable
public final class MomentsTimelineViewModel {
  /// A row of the timeline.
  public enum ListItem: Sendable, Equatable, Identifiable {
    /// The user the timeline belongs to.
    case profile(UserProfileListItemViewModel)
    /// A moment.
    case moment(MomentListItemViewModel)

    /// Unique in a timeline.
    public var id: String {
      switch self {
      case .profile: "profile"
      case .moment(let moment): "moment-\(moment.id)"
      }
    }
  }

  /// The shown timeline; `nil` if no timeline is known.
  public private(set) var momentsDetails: MomentsDetails?
  /// The rows of ``momentsDetails``: the profile and the moments, in the server's order; empty if no timeline is known.
  public private(set) var listItems: [ListItem] = []
  /// Whether there is something to show.
  ///
  /// Observers are notified only when it changes.
  public private(set) var hasContent = false
  /// Whether the server has moments behind the last one, for ``loadMoreItems()``.
  public private(set) var hasMoreItems = false
  /// The moments whose likes the server doesn't have yet, also those that the shown timeline doesn't have.
  public private(set) var pendingMomentIDs: Set<String> = []
  /// When the shown timeline was saved; `nil` if no timeline is shown.
  public private(set) var savedAt: Date?
  /// Whether the timeline, or a page of it, is being loaded: by this screen, or, while ``run()`` is awaited, by another.
  public private(set) var isLoading = false
  /// Why the last load failed; nil while there is no failure, so from the start of a retry on.
  public private(set) var error: MomentsRepoError?
  /// Whether the last load failed.
  public var hasError: Bool { error != nil }

  @ObservationIgnored private let userID: String
  @ObservationIgnored private let momentsRepo: any MomentsRepoType
  @ObservationIgnored private let trackingRepo: any TrackingRepoType
  @ObservationIgnored private let now: @Sendable () -> Date
  @ObservationIgnored private let locale: Locale
  @ObservationIgnored private var loads = 0
  /// How many calls of ``run()`` are awaited: without one, ``loadState`` is what it was.
  @ObservationIgnored private var followers = 0
  @ObservationIgnored private var loadState = MomentsLoadState.idle
  /// Ends its streams when the model is released.
  @ObservationIgnored private let lifetime = MulticastRelay<Void>(buffering: .latest)

  /// Creates the model of a user's timeline.
  ///
  /// - Parameters:
  ///   - userID: Whose timeline it is.
  ///   - momentsRepo: Where it comes from. The rows use the same.
  ///   - trackingRepo: Where the screen and the taps on its rows are reported; by default nowhere.
  ///   - now: The time that the rows' dates count from, asked whenever the timeline changes, and by
  ///     ``updateDates()``.
  ///   - locale: The language of the rows' dates.
  public init(
    userID: String, momentsRepo: any MomentsRepoType, trackingRepo: any TrackingRepoType = TrackingRepo(),
    now: @escaping @Sendable () -> Date = { Date() }, locale: Locale = .current
  ) {
    self.userID = userID
    self.momentsRepo = momentsRepo
    self.trackingRepo = trackingRepo
    self.now = now
    self.locale = locale
  }

  /// The age of the shown timeline; `nil` if no timeline is shown, or if it was saved in the future.
  public var age: Duration? {
    savedAt.flatMap { Freshness.age(savedAt: $0, now: now()) }
  }

  /// Shows the timeline until the calling task is cancelled, the repository ends, or the model is released.
  ///
  /// Await it from the view's task: the timeline is observed while the screen is there, and no longer. The call doesn't
  /// keep the model alive. If the task isn't the view's, it must not keep the model either:
  /// `Task { [weak viewModel] in await viewModel?.run() }` ends with the model.
  public consuming func run() async {
    // The states have the timeline too, so what is shown of it and of its loading is of one moment.
    let states = momentsRepo.loadState(userID: userID).buffering(.latest)
    let pendingLikes = momentsRepo.pendingLikes(userID: userID).buffering(.latest)
    let lifetime = lifetime.stream
    let subscriber = WeakSubscriber(copy self)
    followers += 1
    // Consumed, so that what waits from here on keeps neither the model nor, through it, the repository.
    _ = consume self
    await withTaskGroup { group in
      group.addTask { for await _ in lifetime {} }
      group.addTask {
        async let showingStates: Void = subscriber.receive(states) { $0.show($1) }
        async let showingPendingLikes: Void = subscriber.receive(pendingLikes) { $0.showPending(Set($1.keys)) }
        _ = await (showingStates, showingPendingLikes)
      }
      await group.next()
      group.cancelAll()
    }
    subscriber.object?.endFollowing()
  }

  private func endFollowing() {
    followers -= 1
    updateIsLoading()
  }

  // MARK: - Loading

  /// Asks for the whole timeline, once.
  ///
  /// What comes arrives through ``run()``.
  ///
  /// Sets ``error`` on failure. Cancellation isn't an error.
  public func loadItems() async {
    await load { (repo, userID) async throws(MomentsRepoError) in try await repo.getMoments(userID: userID) }
  }

  /// Asks for the newest page, once.
  ///
  /// What comes arrives through ``run()``, before the moments that are shown already.
  ///
  /// Sets ``error`` on failure. Cancellation isn't an error.
  public func reloadItems() async {
    await load { (repo, userID) async throws(MomentsRepoError) in try await repo.reloadMoments(userID: userID) }
  }

  /// Asks for the next page, if there is one: call it when the last row comes into sight.
  ///
  /// What comes arrives through ``run()``, behind the moments that are shown already. After a failure, the next call asks
  /// for the same page; where the server refused it, ``reloadItems()`` leads on from there.
  ///
  /// Sets ``error`` on failure. Cancellation isn't an error.
  public func loadMoreItems() async {
    await load { (repo, userID) async throws(MomentsRepoError) in try await repo.loadMoreMoments(userID: userID) }
  }

  private func load(
    _ call: @Sendable (any MomentsRepoType, String) async throws(MomentsRepoError) -> Void
  ) async {
    loads += 1
    isLoading = true
    error = nil
    do throws(MomentsRepoError) {
      try await call(momentsRepo, userID)
    } catch {
      if error != .cancelled { self.error = error }
    }
    loads -= 1
    // The result is known here, so the caller doesn't have to wait until the loop over the states has come so far.
    for await state in momentsRepo.loadState(userID: userID).buffering(.latest) {
      show(state)
      break
    }
    updateIsLoading()
  }

  // MARK: - Dates

  /// Brings the dates of the rows up to date, which count from the time of the last change: call it every minute or so.
  public func updateDates() {
    showItems()
  }

  // MARK: - Tracking

  /// Tracks that the screen is shown: call it when it appears.
  public func trackScreenviews() {
    trackingRepo.trackScreenviews(name: "moments-screen", of: self)
  }

  // MARK: - Showing

  private func show(_ details: MomentsDetails) {
    momentsDetails = details
    showItems()
    let hasMore = details.pageInfo?.hasNextPage ?? false
    if hasMoreItems != hasMore { hasMoreItems = hasMore }
    if !hasContent { hasContent = true }
  }

  private func show(_ state: MomentsLoadState) {
    let previous = loadState
    loadState = state
    if let loaded = state.loadedValue {
      // To save the same again is a change too: the rows' dates count from then on.
      if savedAt != loaded.savedAt || momentsDetails != loaded.value { show(loaded.value) }
      if savedAt != loaded.savedAt { savedAt = loaded.savedAt }
    } else if momentsDetails != nil {
      removeItems()
    }
    switch state {
    case .failed(let error, _): if self.error != error { self.error = error }
    case .loading: if error != nil { error = nil }
    case .idle, .loaded: if error != nil, previous.isLoading || previous.failure != nil { error = nil }
    }
    updateIsLoading()
  }

  private func showPending(_ momentIDs: Set<String>) {
    guard momentIDs != pendingMomentIDs else { return }
    pendingMomentIDs = momentIDs
    showItems()
  }

  private func showItems() {
    guard let details = momentsDetails else { return }
    let now = now()
    listItems =
      [.profile(UserProfileListItemViewModel(userDetails: details.userDetails))]
      + details.moments.map { moment in
        .moment(
          MomentListItemViewModel(
            moment: moment, isPending: pendingMomentIDs.contains(moment.id), momentsRepo: momentsRepo,
            trackingRepo: trackingRepo, now: now, locale: locale))
      }
  }

  /// The timeline was removed, for example because the user has logged out.
  private func removeItems() {
    momentsDetails = nil
    listItems = []
    hasContent = false
    hasMoreItems = false
    savedAt = nil
  }

  private func updateIsLoading() {
    let isLoading = loads > 0 || (followers > 0 && loadState.isLoading)
    if self.isLoading != isLoading { self.isLoading = isLoading }
  }
}
