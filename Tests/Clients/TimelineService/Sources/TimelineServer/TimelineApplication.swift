package import Hummingbird
package import Moments

/// The service over one repository.
package enum TimelineApplication {
  /// Returns an application that serves the timelines of a repository.
  package static func make(
    _ repo: MomentsRepo, address: BindAddress = .hostname()
  ) -> Application<RouterResponder<BasicRequestContext>> {
    let requests = RequestCounts()
    let router = TimelineRouter(requests)
    PageRoute().add(to: router)
    TimelineRoute(repo: repo).add(to: router)
    LikeRoute(repo: repo).add(to: router)
    EventsRoute(repo: repo).add(to: router)
    HealthRoute(repo: repo).add(to: router)
    MetricsRoute(repo: repo, requests: requests).add(to: router)
    return Application(
      responder: router.buildResponder(), configuration: .init(address: address, serverName: "TimelineService"))
  }
}
