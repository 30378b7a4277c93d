package import Hummingbird
package import Moments

/// Makes the HTTP application of the service.
package enum TimelineApplication {
  /// Returns an application that serves the timelines of a repository.
  package static func make(
    _ repo: MomentsRepo, address: BindAddress = .hostname()
  ) -> Application<RouterResponder<BasicRequestContext>> {
    let requestCounts = RequestCounts()
    let router = TimelineRouter(requestCounts)
    PageRoute().add(to: router)
    TimelineRoute(repo: repo).add(to: router)
    LikeRoute(repo: repo).add(to: router)
    EventsRoute(repo: repo).add(to: router)
    HealthRoute(repo: repo).add(to: router)
    MetricsRoute(repo: repo, requestCounts: requestCounts).add(to: router)
    return Application(
      responder: router.buildResponder(), configuration: .init(address: address, serverName: "TimelineService"))
  }
}
