internal import DataStore
internal import Foundation
internal import Moments
internal import Multicast

/// `moments`: shows the stored timeline, then the fresh one, then likes a moment while three observers of one
/// repository watch: a list, a detail, and a counter of likes.
struct TimelineCommand {
  let options: TimelineOptions
  let console: Console
  var now: @Sendable () -> Date = { Date() }

  /// Why the command ends early.
  private struct Failure: Error {
    let status: CommandStatus
    let message: String

    init(_ error: StoreError) {
      status = .inputOutput
      message = error.description
    }

    init(_ error: MomentsRepoError) {
      if case .store = error { status = .inputOutput } else { status = .unavailable }
      message = error.description
    }
  }

  func run() async -> CommandStatus {
    do throws(Failure) {
      try await show()
      return .success
    } catch {
      console.error("moments: \(error.message)")
      return error.status
    }
  }

  private func show() async throws(Failure) {
    let folder = options.dataFolder ?? Self.defaultDataFolder
    let store = PersistentDataStore(FileStore(folder: folder, now: now))
    let stored = try await storedTimeline(in: store)
    let repo = try await makeRepo(store: store, folder: folder)
    var observers = TimelineObservers(of: repo.momentsDetails(userID: options.userID))

    if let stored, let details = await observers.next() {
      console.print("Stored timeline of \(details.userDetails.name), saved \(age(of: stored.savedAt)):")
      printRows(of: details, repo: repo)
    } else {
      console.print("No timeline is stored yet.")
    }

    try await perform { () async throws(MomentsRepoError) in try await repo.getMoments(userID: options.userID) }
    guard let fresh = await observers.next() else { return }
    console.print("\nFresh timeline of \(fresh.userDetails.name):")
    printRows(of: fresh, repo: repo)

    guard let moment = fresh.moments.first(where: { $0.isLiked == false }) else {
      console.print("\nEvery moment is liked already.")
      return
    }
    console.print("\nLiking \(TimelineText.heading(of: moment))")
    try await perform { () async throws(MomentsRepoError) in
      try await repo.updateLike(isLiked: true, momentID: moment.id, fromUserID: options.userID)
    }
    for line in await observers.describeNext(momentID: moment.id) { console.print(line) }
  }

  /// What is stored; nil also for bytes that could not be decoded, which is told.
  private func storedTimeline(
    in store: PersistentDataStore<FileStore>
  ) async throws(Failure) -> StoredValue<MomentsDetails>? {
    do throws(StoreError) {
      return try await store.momentsDetails(userID: options.userID)
    } catch {
      guard case .undecodable = error else { throw Failure(error) }
      console.error("moments: \(error)")
      return nil
    }
  }

  private func makeRepo(
    store: PersistentDataStore<FileStore>, folder: URL
  ) async throws(Failure) -> MomentsRepo {
    guard let url = options.serverURL else {
      let backend: DemoBackend
      do throws(StoreError) {
        backend = try await DemoBackend.open(FileStore(folder: folder.appending(path: "demo-server")))
      } catch {
        throw Failure(error)
      }
      return MomentsRepo(
        persistentDataStore: store, getMomentsByUserIDSession: backend, updateMomentLikeSession: backend)
    }
    let session = APISession(url: url)
    return MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: session),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: session))
  }

  private func perform(_ call: () async throws(MomentsRepoError) -> Void) async throws(Failure) {
    do throws(MomentsRepoError) {
      try await call()
    } catch {
      throw Failure(error)
    }
  }

  private func printRows(of details: MomentsDetails, repo: MomentsRepo) {
    for moment in details.moments {
      console.print(
        TimelineText.row(
          MomentListItemViewModel(moment: moment, momentsRepo: repo, now: now(), locale: TimelineText.locale)))
    }
  }

  private func age(of date: Date) -> String {
    TimelineText.age(of: date, at: now())
  }

  private static var defaultDataFolder: URL {
    // There is always exactly one such folder in the user's domain.
    FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0]
      .appending(path: "moments", directoryHint: .isDirectory)
  }
}
