import DataStore
import Multicast
import Repository

/// The code of Repository's `Debugging.md`, copied unchanged so that the compiler checks it.
enum RepositoryDebuggingExamples {
  static func logReportAndEvents<Source: RepositorySource>(
    of comments: SyncedRepository<Source>, log: (String) -> Void
  ) async {
    log(await comments.report().description)
    for await event in comments.events { log(event.description) }
  }

  static func logPendingMutations<Source: MutableSource>(
    of comments: SyncedRepository<Source>, log: (String) -> Void
  ) async throws {
    for item in try await comments.mutations.list() {
      switch item.standing {
      case .waiting, .inFlight, .needsSignIn: log("\(item.key): \(item.standing), attempts: \(item.attempts)")
      case .conflicted(let conflict): log("\(item.key): in conflict: \(conflict.reason)")
      case .refused(let reason): log("\(item.key): refused: \(reason)")
      }
    }
  }
}
