internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Multicast
internal import Repository

/// `GET /metrics`, in the text format of Prometheus.
struct MetricsRoute {
  let repo: MomentsRepo
  let requestCounts: RequestCounts

  func add(to router: TimelineRouter) {
    router.serve(.get, "metrics") { _, _ in
      let report = await repo.report()
      var text = ""
      text += Self.gauge(
        "multicast_subscriptions", "Subscriptions that are alive.", MulticastDiagnostics.liveSubscriptions)
      text += Self.gauge("multicast_channels", "Channels that are alive.", MulticastDiagnostics.liveChannels)
      text += Self.gauge(
        "moments_waiting_likes", "Likes that are waiting or in flight.", report.lanes.reduce(0) { $0 + $1.count })
      text += Self.gauge(
        "moments_refused_likes", "Likes that are dead letters: refused or in conflict.", report.undecidedCount)
      text += Self.gauge(
        "moments_leads", "1 if this service sends likes now, 0 if another service on the store does, or none is due.",
        report.leadership == .following ? 0 : 1)
      text += "# HELP http_requests_total Requests that were answered.\n# TYPE http_requests_total counter\n"
      for (labels, count) in requestCounts.all { text += "http_requests_total{\(labels)} \(count)\n" }
      return Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
  }

  private static func gauge(_ name: String, _ help: String, _ value: Int) -> String {
    "# HELP \(name) \(help)\n# TYPE \(name) gauge\n\(name) \(value)\n"
  }
}
