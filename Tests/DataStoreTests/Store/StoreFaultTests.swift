import Foundation
import Multicast
import Synchronization
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Whichever call of the file system fails, a store throws what it promises or does what it was asked, what it says is
/// stored is what is stored, and the next save works.
@Suite struct StoreFaultTests {
  /// Where a store is put, and what it is asked to do there.
  enum Scenario: CaseIterable {
    case save
    case firstSave
    case saveOverSpoiledBytes
    case saveOverAnOutsideChange
    case remove
    case load
    case loadOfSpoiledBytes
    case observe
  }

  /// Lets one call fail.
  private final class Script: Sendable {
    private let count = Atomic(0)
    private let failing = Atomic(Int.max)
    let code: CInt

    init(code: CInt) {
      self.code = code
    }

    /// Calls of the watch are not counted, because they come when they like.
    var fileSystem: FileSystem {
      FileSystem { call in
        if call.operation.hasPrefix("inotify") { return nil }
        let number = self.count.add(1, ordering: .relaxed).newValue
        return number == self.failing.load(ordering: .relaxed) ? self.code : nil
      }
    }

    /// Lets a call from now on fail.
    func arm(_ number: Int) {
      failing.store(count.load(ordering: .relaxed) + number, ordering: .relaxed)
    }

    /// Lets all further calls be made.
    ///
    /// - Returns: Whether a call failed.
    func disarm() -> Bool {
      let failing = failing.exchange(.max, ordering: .relaxed)
      return count.load(ordering: .relaxed) >= failing
    }
  }

  private let key = StoreKey<String>("text", id: "0")

  @Test(arguments: Scenario.allCases, [EIO, ENOSPC, EROFS, EMFILE])
  func `Whichever call fails, memory is as disk, and the next save works`(scenario: Scenario, code: CInt) async throws {
    for failing in 1... {
      guard try await run(scenario, failing: failing, code: code) else { break }
    }
  }

  @Test(arguments: Scenario.allCases)
  func `A call that a signal interrupts is made again`(scenario: Scenario) async throws {
    for failing in 1... {
      guard try await run(scenario, failing: failing, code: EINTR) else { break }
    }
  }

  /// Plays a scenario in which one call fails.
  ///
  /// - Returns: Whether there was such a call.
  private func run(_ scenario: Scenario, failing: Int, code: CInt) async throws -> Bool {
    let temporary = TemporaryFolder(inMemory: true)
    let file = temporary.url.appending(path: "text.0.value")
    let spoiled = Data("spoiled".utf8)
    let script = Script(code: code)
    let store = FileStore(folder: temporary.url, fileSystem: script.fileSystem)
    let other = FileStore(folder: temporary.url)
    if scenario != .firstSave {
      try await store.save("old", for: key)
    }
    switch scenario {
    case .saveOverSpoiledBytes, .loadOfSpoiledBytes: try spoiled.write(to: file)
    case .saveOverAnOutsideChange: try await other.save("theirs", for: key)
    default: break
    }
    var old: String?
    switch scenario {
    case .firstSave, .saveOverSpoiledBytes, .loadOfSpoiledBytes: old = nil
    case .saveOverAnOutsideChange: old = "theirs"
    default: old = "old"
    }

    script.arm(failing)
    let new: String?
    do throws(StoreError) {
      let found = try await perform(scenario, in: store)
      // An observation leaves out a value that can't be read.
      new = scenario == .observe ? old : found
      if scenario == .observe, found == nil { await expectUnreadable(code, in: store) }
    } catch .undecodable {
      new = nil
    } catch {
      #expect(code != EINTR, "\(error)")
      #expect(error.systemError?.code == code, "\(error)")
      new = old
    }
    let hasFailed = script.disarm()

    // What could not be read is still to be told.
    let isSpoiled: Bool
    let loaded: StoredValue<String>?
    do throws(StoreError) {
      loaded = try await store.load(key)
      isSpoiled = false
    } catch {
      guard case .undecodable = error else { throw error }
      loaded = nil
      isSpoiled = true
    }
    #expect(loaded?.value == new, "call \(failing)")
    #expect(try await FileStore(folder: temporary.url).load(key)?.value == new, "call \(failing)")
    if scenario == .saveOverSpoiledBytes || scenario == .loadOfSpoiledBytes {
      let kept = try FileManager.default.contentsOfDirectory(at: temporary.url, includingPropertiesForKeys: nil)
        .filter { $0.lastPathComponent.contains(".corrupt-") }
      #expect(try kept.map { try Data(contentsOf: $0) } == [spoiled], "call \(failing), \(isSpoiled)")
    }
    let next = try await store.save("next", for: key)
    #expect(try await store.load(key) == next)
    #expect(try await FileStore(folder: temporary.url).load(key)?.value == "next")
    let temporaryFiles = try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false))
      .filter { $0.hasPrefix(".DataStore") }
    // Where even its removal fails, one may stay until later.
    #expect(temporaryFiles.count <= 1)
    return hasFailed
  }

  private func expectUnreadable(_ code: CInt, in store: FileStore) async {
    var events = store.events.makeAsyncIterator()
    guard case .valueUnreadable(key.keyName, let error) = await events.next() else {
      Issue.record("no event")
      return
    }
    #expect(error.systemError?.code == code)
  }

  /// What a scenario asks of the store.
  ///
  /// - Returns: What must be stored after it.
  private func perform(_ scenario: Scenario, in store: FileStore) async throws(StoreError) -> String? {
    switch scenario {
    case .save, .firstSave, .saveOverSpoiledBytes, .saveOverAnOutsideChange:
      return try await store.save("new", for: key).value
    case .remove:
      try await store.remove(key)
      return nil
    case .load, .loadOfSpoiledBytes:
      return try await store.load(key)?.value
    case .observe:
      return try await store.observe(collection: "text", as: String.self).stored.first?.stored.value
    }
  }
}

extension StoreError {
  /// The cause, where the system gave it.
  fileprivate var systemError: SystemError? {
    switch self {
    case .readFailed(let error), .writeFailed(let error), .removeFailed(let error): error
    default: nil
    }
  }
}
