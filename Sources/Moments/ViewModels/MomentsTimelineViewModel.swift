public import Foundation
internal import Multicast
public import Observation
internal import Repository

/// The model of a timeline screen: a user's profile and moments, their age, and the state of loading.
///
/// ```swift
/// .task { await viewModel.run() }
/// .refreshable { await viewModel.loadItems() }
/// ```
///
/// While ``run()`` is awaited, the properties reflect the repository, including changes by other screens and processes.
@MainActor
@Observable
public final class MomentsTimelineViewModel {
  /// A row of the timeline.
  public enum ListItem: Sendable, Equatable, Identifiable {
    /// The profile of the timeline's user.
    case profile(UserProfileListItemViewModel)
    /// A moment.
    case moment(MomentListItemViewModel)

    /// The identifier of the row, unique in a timeline.
    public var id: String {
      switch self {
      case .profile: "profile"
      case .moment(let moment): "moment-\(moment.id)"
      }
    }
  }

  /// The displayed timeline; `nil` if no timeline is known.
  public private(set) var momentsDetails: MomentsDetails?
  /// The rows of ``momentsDetails``: the profile, then the moments in the server's order; empty if no timeline is
  /// known.
  public private(set) var listItems: [ListItem] = []
  /// Whether a timeline is displayed.
  ///
  /// Observers are notified only when the value changes.
  public private(set) var hasContent = false
  /// Whether the store was read and has no timeline, so that a screen may say that there is nothing to show.
  ///
  /// At a launch, it is `false` until the store was read, because a timeline may be stored. It stays `false` if the store
  /// can't be read, or the user has signed out.
  public private(set) var isEmpty = false
  /// Whether the server has moments after the last one; ``loadMoreItems()`` fetches them.
  public private(set) var hasMoreItems = false
  /// The ids of the moments with a like, or the removal of a like, that the server doesn't have yet.
  ///
  /// They include moments that aren't displayed.
  public private(set) var pendingMomentIDs: Set<String> = []
  /// The time from which the age of the displayed timeline counts; `nil` if no timeline is displayed.
  ///
  /// See `LoadedValue.savedAt`.
  public private(set) var savedAt: Date?
  /// Whether the timeline or one of its pages is being loaded by this screen.
  ///
  /// While ``run()`` is awaited, loads by other screens count too.
  public private(set) var isLoading = false
  /// The error of the last load; `nil` if it didn't fail, or if another load has begun.
  public private(set) var error: MomentsRepoError?
  /// Whether ``error`` isn't `nil`; named as in the RxSwift app that this feature replaces.
  public var hasError: Bool { error != nil }

  @ObservationIgnored private let userID: String
  @ObservationIgnored private let momentsRepo: any MomentsRepoType
  @ObservationIgnored private let trackingRepo: any TrackingRepoType
  @ObservationIgnored private let now: @Sendable () -> Date
  @ObservationIgnored private let locale: Locale
  /// The number of loads by this screen that are in flight.
  @ObservationIgnored private var loadsInFlight = 0
  /// The number of calls of ``run()`` in flight; if it is zero, ``loadState`` isn't kept up to date.
  @ObservationIgnored private var runsInFlight = 0
  @ObservationIgnored private var loadState = MomentsLoadState.idle
  /// A relay whose streams finish when the model is released.
  @ObservationIgnored private let lifetime = MulticastRelay<Void>(buffering: .latest)

  /// Creates the model of a user's timeline.
  ///
  /// - Parameters:
  ///   - userID: The id of the user the timeline belongs to.
  ///   - momentsRepo: The repository of the timeline. The rows use the same one.
  ///   - trackingRepo: The repository that receives the tracking events of the screen and its rows; by default, they
  ///     are discarded.
  ///   - now: A closure that returns the current time, to which the rows' dates are relative. It is called when the
  ///     timeline or ``pendingMomentIDs`` changes, and by ``updateDates()`` and ``age``.
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

  /// The age of the displayed timeline; `nil` if no timeline is displayed, or if ``savedAt`` is in the future or
  /// implausibly long ago.
  public var age: Duration? {
    savedAt.flatMap { Freshness.age(savedAt: $0, now: now()) }
  }

  /// Observes the timeline until the calling task is cancelled, the repository is released, or the model is released.
  ///
  /// Await it in the view's task, so that the timeline is observed exactly while the screen exists. The call doesn't
  /// keep the model alive. In any other task, capture the model weakly:
  /// `Task { [weak viewModel] in await viewModel?.run() }` ends when the model is released.
  public consuming func run() async {
    // The loading states contain the timeline, so the displayed timeline and its loading state are consistent.
    let states = momentsRepo.loadState(userID: userID).buffering(.latest)
    let pendingLikes = momentsRepo.pendingLikes(userID: userID).buffering(.latest)
    let lifetimeStream = lifetime.stream
    runsInFlight += 1
    let subscriber = WeakSubscriber(consume self)
    await withTaskGroup { group in
      group.addTask { for await _ in lifetimeStream {} }
      group.addTask {
        async let showingStates: Void = subscriber.receive(states) { $0.show($1) }
        async let showingPendingLikes: Void = subscriber.receive(pendingLikes) { $0.showPending(Set($1.keys)) }
        _ = await (showingStates, showingPendingLikes)
      }
      await group.next()
      group.cancelAll()
    }
    subscriber.object?.endRun()
  }

  private func endRun() {
    runsInFlight -= 1
    updateIsLoading()
  }

  // MARK: - Loading

  /// Fetches the complete timeline.
  ///
  /// The result is shown before the call returns. If the calling task is cancelled, only ``run()`` shows the result.
  ///
  /// Sets ``error`` on failure. Cancellation isn't an error.
  public func loadItems() async {
    await load { (repo, userID) async throws(MomentsRepoError) in try await repo.getMoments(userID: userID) }
  }

  /// Fetches the newest page.
  ///
  /// The result is shown like that of ``loadItems()``. New moments appear before the displayed ones.
  ///
  /// Sets ``error`` on failure. Cancellation isn't an error.
  public func reloadItems() async {
    await load { (repo, userID) async throws(MomentsRepoError) in try await repo.reloadMoments(userID: userID) }
  }

  /// Fetches the next page, if there is one.
  ///
  /// Call it when the last row becomes visible. The result is shown like that of ``loadItems()``. The new moments
  /// appear after the displayed ones. After a failure, the next call fetches the same page. If the server refused the
  /// page, call ``reloadItems()`` first.
  ///
  /// Sets ``error`` on failure. Cancellation isn't an error.
  public func loadMoreItems() async {
    await load { (repo, userID) async throws(MomentsRepoError) in try await repo.loadMoreMoments(userID: userID) }
  }

  private func load(
    _ call: @Sendable (any MomentsRepoType, String) async throws(MomentsRepoError) -> Void
  ) async {
    loadsInFlight += 1
    isLoading = true
    error = nil
    do throws(MomentsRepoError) {
      try await call(momentsRepo, userID)
    } catch {
      if error != .cancelled { self.error = error }
    }
    loadsInFlight -= 1
    // Shows the result before the call returns, because the loop in `run()` may not have received it yet.
    for await state in momentsRepo.loadState(userID: userID).buffering(.latest) {
      show(state)
      break
    }
    updateIsLoading()
  }

  // MARK: - Dates

  /// Updates the relative dates of the rows.
  ///
  /// Call it about once a minute. Otherwise the dates stay relative to the time of the last change.
  public func updateDates() {
    showItems()
  }

  // MARK: - Tracking

  /// Tracks that the screen is shown.
  ///
  /// Call it when the screen appears.
  public func trackScreenviews() {
    trackingRepo.trackScreenviews(name: "moments-screen", of: self)
  }

  // MARK: - Updating

  private func showTimeline(_ details: MomentsDetails) {
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
      // Saving an equal timeline again counts as a change, so that the rows' dates are updated.
      if savedAt != loaded.savedAt || momentsDetails != loaded.value { showTimeline(loaded.value) }
      if savedAt != loaded.savedAt { savedAt = loaded.savedAt }
    } else if momentsDetails != nil {
      removeItems()
    }
    let isEmpty = state.loadedValue == nil && state.failure?.hidesStoredTimeline != true
    if self.isEmpty != isEmpty { self.isEmpty = isEmpty }
    switch state {
    case .failed(let error, _): if self.error != error { self.error = error }
    case .loading: if error != nil { error = nil }
    // The error is cleared if the previous state was `loading` or `failed`. A change of the timeline alone, such as a
    // like, doesn't clear it, because the error may be one that `load(_:)` received without a `failed` state.
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

  /// Clears the screen after the timeline was removed, for example because the user has signed out.
  private func removeItems() {
    momentsDetails = nil
    listItems = []
    hasContent = false
    hasMoreItems = false
    savedAt = nil
  }

  private func updateIsLoading() {
    let isLoading = loadsInFlight > 0 || (runsInFlight > 0 && loadState.isLoading)
    if self.isLoading != isLoading { self.isLoading = isLoading }
  }
}

extension MomentsRepoError {
  /// Whether a timeline may be stored although a state with this failure has none.
  fileprivate var hidesStoredTimeline: Bool {
    switch self {
    case .store, .signedOut: true
    case .session, .queueFull, .cancelled: false
    }
  }
}
