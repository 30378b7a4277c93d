public import Foundation
internal import Multicast
public import Observation

/// The model of the list of recent sign-ins, which is a part of the sign-in screen.
@MainActor
@Observable
public final class RecentSignInsViewModel {
  /// The times at which the signed-in user signed in, newest first; empty until a list is loaded, and after a sign-out.
  public private(set) var dates: [Date] = []
  /// The error of the load that failed last; every load that begins sets it to `nil`.
  public private(set) var error: SignInError?

  @ObservationIgnored private let userService: any UserServiceType
  @ObservationIgnored private let currentSubscription = CurrentSubscription<[Date]>()

  /// Creates the model of a list.
  ///
  /// - Parameter userService: The service that loads the sign-ins.
  public init(userService: any UserServiceType) {
    self.userService = userService
  }

  /// Loads the newest sign-ins.
  ///
  /// The result arrives through ``run()``. Sets ``error`` on failure. Cancellation isn't an error.
  public func reload() async {
    await load { service throws(SignInError) in try await service.reloadRecentSignIns() }
  }

  /// Loads older sign-ins.
  ///
  /// The result arrives through ``run()``. Sets ``error`` on failure. Cancellation isn't an error.
  public func loadMore() async {
    await load { service throws(SignInError) in try await service.loadMoreRecentSignIns() }
  }

  /// Observes the list until the calling task is cancelled, the service is released, or the model is released.
  ///
  /// Another call ends this one.
  public consuming func run() async {
    let recentSignIns = currentSubscription.replace(with: userService.recentSignIns.subscribe())
    // The dates may belong to a user who signed out while the model wasn't subscribed. If they are still valid, the new
    // subscription receives them first.
    if !dates.isEmpty { dates = [] }
    await WeakSubscriber(consume self).receive(recentSignIns) { $0.dates = $1 }
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
