public import Foundation
internal import Multicast
public import Observation

/// The list of recent sign-ins, a part of the sign-in screen.
@MainActor
@Observable
public final class RecentSignInsViewModel {
  /// When the signed-in user signed in, newest first; empty before ``reload()`` and after a sign-out.
  public private(set) var dates: [Date] = []
  /// Why the last load failed; `nil` if it didn't, and from the start of a retry.
  public private(set) var error: SignInError?

  @ObservationIgnored private let userService: any UserServiceType
  @ObservationIgnored private var following: MulticastSubscription<[Date], Never>?

  /// Creates the model of a list.
  ///
  /// - Parameter userService: Where the list comes from.
  public init(userService: any UserServiceType) {
    self.userService = userService
  }

  deinit {
    following?.cancel()
  }

  /// Loads the newest sign-ins, which arrive through ``run()``.
  public func reload() async {
    await load { service throws(SignInError) in try await service.reloadRecentSignIns() }
  }

  /// Loads older sign-ins, which arrive through ``run()``.
  public func loadMore() async {
    await load { service throws(SignInError) in try await service.loadMoreRecentSignIns() }
  }

  /// Shows the list until the calling task is cancelled, the service ends or the model is released.
  public consuming func run() async {
    let recentSignIns = userService.recentSignIns.subscribe()
    following?.cancel()
    following = recentSignIns
    // A sign-out that happened while nothing was observed wasn't reported. A list that is still valid is received
    // first.
    if !dates.isEmpty { dates = [] }
    let subscriber = WeakSubscriber(copy self)
    // Consumed, so that what waits from here on doesn't keep the model.
    _ = consume self
    await subscriber.receive(recentSignIns) { $0.dates = $1 }
  }

  private func load(_ call: (any UserServiceType) async throws(SignInError) -> Void) async {
    error = nil
    do throws(SignInError) {
      try await call(userService)
    } catch {
      if error != .cancelled { self.error = error }
    }
  }
}
