import Foundation
import TestSupport
import Testing

@testable import DataStore

/// A folder of format 2 and a database of layout 1, which an earlier version of the library wrote.
@Suite struct FormerVersionTests {
  private struct Page: Codable, Hashable {
    var title: String
    var numbers: [Double]
  }

  private let temporary = TemporaryFolder()
  private let pageKey = StoreKey<Page>("page", id: "Jake/0")
  private let saveTime = Date(timeIntervalSinceReferenceDate: 816_932_841.5)

  private func copyFixture() throws {
    let fixture = URL(filePath: #filePath).appending(path: "../../Fixtures/Format2").standardized
    try FileManager.default.copyItem(at: fixture, to: temporary.url)
  }

  private func expectReadableAndWritable(_ openStore: () -> any KeyValueStore) async throws {
    let store = openStore()
    let loaded = try #require(try await store.load(pageKey))
    #expect(loaded.value == Page(title: "名字", numbers: [0.1, 1e300]))
    #expect(loaded.savedAt == saveTime)
    #expect(try await store.load(StoreKey<Page>("page"))?.value == Page(title: "", numbers: []))
    #expect(try await store.load(StoreKey<Bool>("toggle-a"))?.value == true)
    #expect(try await store.load(StoreKey<Int>("removed")) == nil)
    let observation = try await store.observe(collection: "page", as: Page.self)
    #expect(observation.stored.map(\.key.id) == [nil, "Jake/0"])

    // The tag of a value that was stored without one is derived from the bytes, so it is the same in every store.
    #expect(try await openStore().load(pageKey)?.tag == loaded.tag)
    var batch = StoreBatch()
    batch.require(loaded.tag, of: pageKey)
    batch.save(Page(title: "new", numbers: []), for: pageKey)
    let commit = try await openStore().commit(batch)
    #expect(try await store.load(pageKey)?.tag == commit.tag)
    #expect(try await openStore().load(pageKey)?.value.title == "new")
    #expect(try await openStore().load(StoreKey<Page>("page"))?.savedAt == saveTime)
  }

  @Test func `A folder of format 2 is read, and a save writes only its own value in the current format`() async throws {
    try copyFixture()
    let folder = temporary.url.appending(path: "folder")
    try await expectReadableAndWritable { FileStore(folder: folder) }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false))
    #expect(names.sorted() == ["page.%4aake%2f0.value", "page.value", "toggle-a.value"])
    #expect(try String(contentsOf: folder.appending(path: "page.value"), encoding: .utf8).contains("\"format\":2"))
  }

  #if SQLite
    private var database: URL { temporary.url.appending(path: "store.sqlite") }

    private func openConnection() throws -> SQLiteConnection {
      try SQLiteConnection(path: database.path(percentEncoded: false), permissionsOf: nil, busyTimeout: .seconds(5))
    }

    @Test func `A database of layout 1 is migrated by the first store that opens it`() async throws {
      try copyFixture()
      #expect(try openConnection().first("PRAGMA user_version") { $0.integer(0) } == 1)
      try await expectReadableAndWritable { SQLiteStore(file: database) }
      let connection = try openConnection()
      #expect(try connection.first("PRAGMA user_version") { $0.integer(0) } == 2)
      let tables = try connection.all("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") {
        $0.text(0)
      }
      #expect(tables == ["change", "part", "quarantine", "sqlite_sequence", "value"])
    }

    @Test func `A migration that fails leaves the database of layout 1 intact`() async throws {
      try copyFixture()
      // A table that already has the name of a new one makes the migration fail between its statements.
      try openConnection().run("CREATE TABLE change (in_the_way)")
      await #expect(throws: StoreError.self) { try await SQLiteStore(file: database).load(pageKey) }
      #expect(try openConnection().first("PRAGMA user_version") { $0.integer(0) } == 1)
      // Only layout 1 has the table `removed`.
      #expect(try openConnection().first("SELECT count(*) FROM removed") { $0.integer(0) } == 1)
      try openConnection().run("DROP TABLE change")
      #expect(try await SQLiteStore(file: database).load(pageKey)?.value.title == "名字")
    }

    @Test func `Stores that open a database of layout 1 at the same time can all read it`() async throws {
      try copyFixture()
      let (database, pageKey) = (database, pageKey)
      try await withThrowingTaskGroup(of: String?.self) { group in
        for _ in 0..<8 { group.addTask { try await SQLiteStore(file: database).load(pageKey)?.value.title } }
        for try await title in group { #expect(title == "名字") }
      }
    }
  #endif
}
