#if PostgreSQL && canImport(Glibc)
  import Foundation
  import TestSupport
  import Testing

  @testable import DataStore

  @Suite(
    .timeLimit(.minutes(15)),
    .disabled(if: PostgreSQLPlace.isMissing || PgBouncer.isMissing, "There is no server or no PgBouncer."))
  struct PostgreSQLPoolerTests {
    private let place: PostgreSQLPlace
    private let key = StoreKey<Int>("number")

    init() throws {
      place = try PostgreSQLPlace()
    }

    /// Starts PgBouncer.
    private func pooler(mode: String) throws -> PgBouncer {
      try PgBouncer(before: try #require(place.serverFolder), schema: place.schema, mode: mode)
    }

    /// Opens a store that connects to a pooler.
    private func store(through pooler: PgBouncer) throws -> PostgreSQLStore {
      PostgreSQLStore(address: "host=\(pooler.host) user=postgres dbname=postgres", timeout: .seconds(10))
    }

    @Test(arguments: ["transaction", "statement"])
    func `A pooler that assigns processes by transaction is named at the first call`(mode: String) async throws {
      let pooler = try pooler(mode: mode)
      let store = try store(through: pooler)
      for _ in 1...2 {
        let error = await #expect(throws: StoreError.self) { try await store.save(1, for: key) }
        let text = try #require(error).description
        #expect(text.contains("a connection pooler in transaction mode"), "\(text)")
        #expect(text.contains("pool_mode = session"), "\(text)")
      }
      extendLifetime(pooler)
    }

    @Test func `A pooler in session mode works`() async throws {
      let pooler = try pooler(mode: "session")
      let store = try store(through: pooler)
      let key = StoreKey<Int>("pooled", id: UUID().uuidString)
      for number in 1...3 {
        try await store.save(number, for: key)
        #expect(try await store.load(key)?.value == number)
      }
      try await store.remove(key)
      extendLifetime(pooler)
    }

    @Test(arguments: ["26000", "42P05", "0A000"])
    func `An error that a pooler causes says how to connect`(state: String) {
      let error = SystemError(
        code: 0, operation: "running", path: "db", source: .postgreSQL(state: state, message: "message"))
      #expect(error.description.contains("through a pooler in session mode"))
    }
  }
#endif
