public import Foundation
internal import Multicast
public import Observation

/// The timeline screen: the profile and the moments of a user, whether they load, and whether that failed.
///
/// ```swift
/// .task { await viewModel.run() }
/// .refreshable { await viewModel.loadItems() }
/// ```
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

  /// Nothing at first; then the profile and the moments, in the server's order.
  public private(set) var listItems: [ListItem] = []
  /// Whether there is something to show.
  ///
  /// Observers are told only when it changes.
  public private(set) var hasContent = false
  /// Whether a call of ``loadItems()`` runs.
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

  /// Creates the model of a user's timeline.
  ///
  /// - Parameters:
  ///   - userID: Whose timeline it is.
  ///   - momentsRepo: Where it comes from. The rows use the same.
  ///   - trackingRepo: Where the screen and the taps on its rows are told; by default nowhere.
  ///   - now: The time that the rows' dates count from, asked whenever the timeline changes.
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

  /// Follows the timeline until the calling task is cancelled or the repository ends.
  ///
  /// Await it from the view's task: the timeline is followed while the screen is there, and no longer.
  public func run() async {
    for await details in momentsRepo.momentsDetails(userID: userID).buffering(.latest) {
      show(details)
    }
  }

  /// Asks for news, once.
  ///
  /// What comes arrives through ``run()``.
  ///
  /// A failure is in ``error``; to be cancelled is none.
  public func loadItems() async {
    loads += 1
    isLoading = true
    error = nil
    do throws(MomentsRepoError) {
      try await momentsRepo.getMoments(userID: userID)
    } catch {
      if error != .cancelled { self.error = error }
    }
    loads -= 1
    isLoading = loads > 0
  }

  /// Tracks that the screen is shown: call it when it appears.
  public func trackScreenviews() {
    trackingRepo.trackScreenviews(name: "moments-screen", of: self)
  }

  private func show(_ details: MomentsDetails) {
    let now = now()
    listItems =
      [.profile(UserProfileListItemViewModel(userDetails: details.userDetails))]
      + details.moments.map { moment in
        .moment(
          MomentListItemViewModel(
            moment: moment, momentsRepo: momentsRepo, trackingRepo: trackingRepo, now: now, locale: locale))
      }
    if !hasContent { hasContent = true }
  }
}
