#if PostgreSQL && canImport(Glibc)
  import Foundation
  import Multicast
  import TestSupport
  import Testing

  @testable import DataStore

  /// Saves to a server whose disk is full.
  @Suite(
    .disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."),
    .enabled(if: MemoryVolume.isAvailable, "This process can't mount a volume in memory."),
    .timeLimit(.minutes(15)))
  struct PostgreSQLFullDiskTests {
    /// A value whose size and number a test chooses, and that can't be compressed well.
    private struct Item: Codable, Sendable, Equatable {
      let number: Int
      let padding: String

      init(_ number: Int, byteCount: Int = 0) {
        self.number = number
        padding = String(decoding: (0..<byteCount).map { _ in UInt8.random(in: 35...90) }, as: UTF8.self)
      }
    }

    private let key = StoreKey<Item>("items", id: "key")
    private let otherKey = StoreKey<Item>("items", id: "other")

    @Test
    func `A save to a full disk throws an error that says so, changes nothing, and succeeds once there is space`()
      async throws
    {
      let volume = try MemoryVolume(byteCount: 16 << 20, owner: PostgreSQLCluster.owner)
      let cluster = try PostgreSQLCluster()
      defer { extendLifetime((volume, cluster)) }
      try PostgreSQLConnection(cluster.address, timeout: .seconds(60)).run(
        script: "CREATE TABLESPACE small LOCATION '\(volume.path)'")
      let place = try PostgreSQLPlace(server: cluster.address, options: "-cdefault_tablespace=small")
      let (store, observedStore) = (place.store(), place.store())
      try await store.save(Item(1), for: key)
      var changes = try await observedStore.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value.number == 1)

      try volume.fill()
      for number in 2...4 {
        var batch = StoreBatch()
        batch.save(Item(number), for: key)
        batch.save(Item(number, byteCount: 1 << 20), for: otherKey)
        let error = await #expect(throws: StoreError.self) { try await store.commit(batch) }
        // 53100 is disk_full.
        guard case .writeFailed(let cause) = error, case .postgreSQL("53100", let message) = cause.source else {
          Issue.record("\(String(describing: error))")
          return
        }
        #expect(message.contains("No space left on device"))
        #expect(cause.description.contains("free some, then try again"))
        for store in [store, observedStore, place.store()] {
          #expect(try await store.load(key)?.value == Item(1))
          #expect(try await store.load(otherKey) == nil)
        }
      }

      try volume.removeFiller()
      let large = Item(5, byteCount: 1 << 20)
      try await store.save(large, for: otherKey)
      try await store.save(Item(5), for: key)
      #expect(await changes.next()?.stored?.value.number == 5)
      #expect(try await place.store().load(otherKey)?.value == large)
    }

    /// Without space for its log, the server ends all connections and crashes, and may restart by itself.
    @Test
    func `No acknowledged save is lost when the server crashes for lack of space, and saves work once space is free`()
      async throws
    {
      let volume = try MemoryVolume(byteCount: 64 << 20, owner: PostgreSQLCluster.owner)
      let cluster = try PostgreSQLCluster()
      defer { extendLifetime((volume, cluster)) }
      let logFolder = cluster.dataFolder.appending(path: "pg_wal").path(percentEncoded: false)
      try cluster.stop()
      _ = try run("cp", "--recursive", "--preserve", logFolder, volume.path)
      _ = try run("rm", "--recursive", logFolder)
      _ = try run("ln", "--symbolic", "\(volume.path)/pg_wal", logFolder)
      try cluster.start()

      let place = try PostgreSQLPlace(server: cluster.address)
      let (store, observedStore) = (place.store(timeout: .seconds(3)), place.store(timeout: .seconds(60)))
      try await store.save(Item(1), for: key)
      var changes = try await observedStore.changes(of: key).subscribe().makeAsyncIterator()
      try volume.fill()
      var acknowledgedCount = 1
      var failure: StoreError?
      while failure == nil, acknowledgedCount < 100 {
        do throws(StoreError) {
          try await store.save(Item(acknowledgedCount + 1, byteCount: 1 << 20), for: key)
          acknowledgedCount += 1
        } catch {
          failure = error
        }
      }
      guard case .writeFailed(let cause) = failure, case .postgreSQL(_, let message) = cause.source else {
        Issue.record("\(String(describing: failure)) after \(acknowledgedCount) saves")
        return
      }
      #expect(message.contains("No space left on device"), "\(cause)")

      try volume.removeFiller()
      try await cluster.recover()
      let found = try #require(try await place.store(timeout: .seconds(60)).load(key)?.value.number)
      // The save that failed may have been made nevertheless, if its commit was written before the crash.
      #expect(found == acknowledgedCount || found == acknowledgedCount + 1)
      try await place.store(timeout: .seconds(60)).save(Item(1_000), for: key)
      try await store.save(Item(1_001), for: key)
      var last = 0
      while let number = await changes.next()?.stored?.value.number {
        #expect(number > last)
        #expect(number <= found || number >= 1_000)
        last = number
        if number == 1_001 { break }
      }
      #expect(last == 1_001)
      #expect(try await place.store().load(key)?.value == Item(1_001))
    }
  }
#endif
