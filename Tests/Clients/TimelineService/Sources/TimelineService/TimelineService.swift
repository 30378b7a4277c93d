internal import ArgumentParser
internal import Hummingbird
internal import Moments
internal import TimelineServer

/// Serves timelines to browsers: a page, JSON, and a stream of events.
@main
struct TimelineService: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serves timelines to browsers.",
    discussion: "Likes that are unsent when the service stops stay in the store, and are sent after the next start.")

  @Option(help: "The address to listen on.")
  var host = "127.0.0.1"

  @Option(help: "The port to listen on.")
  var port = 8080

  @Option(help: ArgumentHelp("The store of the timelines and likes.", valueName: Storage.valueName))
  var store = Storage.default

  @Option(help: ArgumentHelp("The GraphQL server; by default, a demonstration in this process.", valueName: "url"))
  var upstream = Upstream.demonstration

  func run() async throws {
    let (momentsSession, likeSession) = upstream.makeSessions()
    let repo = MomentsRepo(
      persistentDataStore: try store.open(), getMomentsByUserIDSession: momentsSession,
      updateMomentLikeSession: likeSession)
    try await TimelineApplication.make(repo, address: .hostname(host, port: port)).runService()
  }
}
