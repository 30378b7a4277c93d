internal import DataStore
internal import Foundation
internal import GraphQLClient
internal import Moments
internal import Multicast
internal import Repository
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Commands that like moments in a process that may be killed at any time.
///
/// The likes are numbered, and the number of a like determines its content, except on a real server. When `updateLike`
/// has returned, the process prints the number, the outcome and the idempotency key of the like.
extension TestChild {
  static let momentIDs = ["0", "1", "2"]

  private static func storeFolder(in folder: URL) -> URL {
    folder.appending(path: "store", directoryHint: .isDirectory)
  }

  private static func makeServer(in folder: URL, seed: UInt64? = nil) -> LikesServer {
    LikesServer(file: folder.appending(path: "server"), seed: seed)
  }

  private static func makeRepo(on store: FileStore, with server: LikesServer) -> MomentsRepo {
    MomentsRepo(
      persistentDataStore: PersistentDataStore(store), getMomentsByUserIDSession: server,
      updateMomentLikeSession: server,
      retryPolicy: RetryPolicy(base: .milliseconds(1), cap: .milliseconds(4)))
  }

  /// Likes moments and concurrently fetches timelines, on a server that fails half of the requests, and then waits to be
  /// killed.
  ///
  /// The number of likes is limited, and is more than any test waits for; see `maximumEditCount`.
  static func like(from first: Int, seed: UInt64, in folder: URL) async throws {
    let server = makeServer(in: folder, seed: seed)
    let repo = makeRepo(on: FileStore(folder: storeFolder(in: folder)), with: server)
    let events = repo.events.subscribe()
    for number in first..<first + 64 {
      async let fetched: Void = number.isMultiple(of: 3) ? fetch(userID: numberedLike(number).userID, by: repo) : ()
      await performAndPrint(numberedLike(number), number, by: repo, events)
      await fetched
    }
    try await Task.sleep(for: .seconds(3_600))
  }

  /// Likes moments, but kills the process before the given call of the store's ``FileSystem``, counted from 1.
  static func like(from first: Int, to last: Int, dyingAtCall fatalCall: Int, in folder: URL) async throws {
    let callCount = Atomic(0)
    let fileSystem = FileSystem { _ in
      if callCount.add(1, ordering: .relaxed).newValue == fatalCall { kill(getpid(), SIGKILL) }
      return nil
    }
    let store = FileStore(folder: storeFolder(in: folder), fileSystem: fileSystem)
    let repo = makeRepo(on: store, with: makeServer(in: folder))
    let events = repo.events.subscribe()
    for number in first...last { await performAndPrint(numberedLike(number), number, by: repo, events) }
  }

  /// Likes moments of user 0 on a real server.
  static func like(_ momentIDs: [String], at url: URL, in folder: URL) async throws {
    let apiSession = APISession(url: url)
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(FileStore(folder: folder)),
      getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: apiSession),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: apiSession))
    let events = repo.events.subscribe()
    for (number, momentID) in momentIDs.enumerated() {
      await performAndPrint(MomentLike(userID: "0", momentID: momentID, isLiked: true), number, by: repo, events)
    }
    // Keeps running until it is killed, or standard input ends.
    while readLine() != nil {}
  }

  /// Waits until no like is waiting or in flight, and reports whether the stored and the observed timelines agree with
  /// the server's.
  static func deliverLikes(in folder: URL) async throws {
    let server = makeServer(in: folder)
    let store = PersistentDataStore(FileStore(folder: storeFolder(in: folder)))
    let repo = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: server, updateMomentLikeSession: server)
    for await likes in repo.mutations.changes {
      if likes.contains(where: { $0.standing == .waiting || $0.standing == .inFlight }) { continue }
      say("\(likes.count) likes left")
      break
    }
    for userID in await server.userIDs.sorted() {
      let timeline = await server.timeline(of: userID)
      guard let stored = try await store.momentsDetails(userID: userID)?.value else {
        say("\(userID) has nothing stored")
        continue
      }
      say("\(userID) " + (stored == timeline ? "agrees" : "differs: \(stored) instead of \(timeline)"))
      for await observed in repo.momentsDetails(userID: userID) {
        say("\(userID) " + (observed == timeline ? "agrees" : "differs: \(observed) instead of \(timeline)"))
        break
      }
    }
  }

  private static func numberedLike(_ number: Int) -> MomentLike {
    MomentLike(userID: "\(number % 2)", momentID: momentIDs[number / 2 % 3], isLiked: number / 6 % 2 == 0)
  }

  private static func performAndPrint(
    _ like: MomentLike, _ number: Int, by repo: MomentsRepo, _ events: MulticastSubscription<RepositoryEvent, Never>
  ) async {
    let outcome: MomentLikeOutcome
    do throws(MomentsRepoError) {
      outcome = try await repo.updateLike(
        isLiked: like.isLiked, momentID: like.momentID, fromUserID: like.userID)
    } catch {
      fail("\(error)")
    }
    // The calls are sequential, so the next enqueued mutation belongs to this call.
    for await event in events {
      guard case .mutationEnqueued(let id, _) = event else { continue }
      say("\(number) \(outcome) \(id)")
      return
    }
  }

  private static func fetch(userID: String, by repo: MomentsRepo) async {
    // The server fails at random. A failure is ignored, because the next fetch follows soon.
    do throws(MomentsRepoError) { try await repo.getMoments(userID: userID) } catch {}
  }
}
