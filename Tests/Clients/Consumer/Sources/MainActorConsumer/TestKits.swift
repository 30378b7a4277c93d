import DataStore
import DataStoreTesting
import Moments
import MomentsTesting
import MulticastTesting
import Repository
import RepositoryTesting

extension MainActorConsumer {
  static func advanceClock() async throws {
    let clock = ManualClock()
    let sleep = Task { try await clock.sleep(for: .seconds(60)) }
    await clock.sleepers()
    clock.advance(by: .seconds(60))
    try await sleep.value
    report("MulticastTesting", clock.now.offset, expected: .seconds(60))
  }

  static func checkStore() async throws {
    let storage = InMemoryStorage()
    let check = StoreConformance.checks[0]
    // A broken rule throws an error, which ends the program.
    try await check.run(on: StoreHarness { InMemoryStore(storage: storage) })
    print("DataStoreTesting: \(check)")
  }

  static func changeNotesOfServer() throws {
    let server = InMemoryServer<NotesKey, [Note], NoteChange>(empty: [])
    let key = NotesKey(folder: "home")
    let id = MutationID(rawValue: "1")
    // The same change twice, as after a lost reply.
    for _ in 1...2 { _ = try server.apply(.add(Note(id: "1", text: "Milk")), to: key, id: id) }
    report("RepositoryTesting", server.version(of: key), expected: 1)
  }

  static func likeMomentOnServer() async throws {
    let server = DemonstrationServer()
    let timeline = try await server.getMoments(userID: "0")
    let reply = try await server.updateLike(true, momentID: timeline.moments[0].id, fromUserID: "0")
    report("MomentsTesting", reply.moments[0].isLiked == true, expected: true)
  }
}
