import Foundation
import Multicast
import Synchronization
import TestSupport
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Calls a method of a store repeatedly, and each time makes another of its file system calls fail.
///
/// The method either succeeds or throws an error that it documents. Afterwards, the store and the folder have the same
/// value, and the next save succeeds.
@Suite struct StoreFaultTests {
  /// The initial state of a folder, and the method that is called.
  enum Scenario: CaseIterable {
    case save
    case firstSave
    case saveOverCorruptBytes
    case saveOverExternalChange
    case remove
    case load
    case loadOfCorruptBytes
    case observe
  }

  /// Makes one call of a file system fail.
  private final class FaultInjector: Sendable {
    private let callCount = Atomic(0)
    private let failingNumber = Atomic(Int.max)
    let code: CInt

    init(code: CInt) {
      self.code = code
    }

    /// A file system that counts its calls, and in which one of them fails.
    ///
    /// Calls of inotify aren't counted, because their timing isn't deterministic.
    var fileSystem: FileSystem {
      FileSystem { call in
        if call.operation.hasPrefix("inotify") { return nil }
        let number = self.callCount.add(1, ordering: .relaxed).newValue
        return number == self.failingNumber.load(ordering: .relaxed) ? self.code : nil
      }
    }

    /// Makes the call with the given number fail; the next call has number 1.
    func arm(_ number: Int) {
      failingNumber.store(callCount.load(ordering: .relaxed) + number, ordering: .relaxed)
    }

    /// Lets all later calls succeed.
    ///
    /// - Returns: Whether a call failed.
    func disarm() -> Bool {
      let failingNumber = failingNumber.exchange(.max, ordering: .relaxed)
      return callCount.load(ordering: .relaxed) >= failingNumber
    }
  }

  private let key = StoreKey<String>("text", id: "0")

  @Test(arguments: Scenario.allCases, [EIO, ENOSPC, EROFS, EMFILE])
  func `If a file system call fails, memory and disk agree, and the next save works`(
    scenario: Scenario, code: CInt
  ) async throws {
    for number in 1... {
      guard try await callFails(number, in: scenario, code: code) else { break }
    }
  }

  @Test(arguments: Scenario.allCases)
  func `A file system call that is interrupted by a signal is repeated`(scenario: Scenario) async throws {
    for number in 1... {
      guard try await callFails(number, in: scenario, code: EINTR) else { break }
    }
  }

  @Test(arguments: [true, false], [EIO, ENOSPC, EROFS, EMFILE, EPERM])
  func `If a file system call fails, an undecodable value is replaced or removed and kept in quarantine, or unchanged`(
    isSave: Bool, code: CInt
  ) async throws {
    let numberKey = StoreKey<Int>(key.keyName)
    for number in 1... {
      let temporary = TemporaryFolder(inMemory: true)
      let folder = temporary.url
      try await FileStore(folder: folder).save(7, for: numberKey)
      let bytes = try Data(contentsOf: folder.appending(path: "text.0.value"))
      let injector = FaultInjector(code: code)
      let store = FileStore(folder: folder, fileSystem: injector.fileSystem)
      injector.arm(number)
      var isMade = true
      do throws(StoreError) {
        if isSave { try await store.save("new", for: key) } else { try await store.remove(key) }
      } catch {
        #expect(error.systemError?.code == code, "call \(number): \(error)")
        isMade = false
      }
      let hasFailed = injector.disarm()
      if isMade {
        #expect(try await FileStore(folder: folder).load(key)?.value == (isSave ? "new" : nil), "call \(number)")
      } else {
        #expect(try await FileStore(folder: folder).load(numberKey)?.value == 7, "call \(number)")
      }
      let quarantined = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        .filter { $0.lastPathComponent.contains(".corrupt-") }
      #expect(try quarantined.map { try Data(contentsOf: $0) } == (isMade ? [bytes] : []), "call \(number)")
      if !hasFailed { break }
    }
  }

  /// Runs a scenario in which the file system call with the given number fails.
  ///
  /// - Returns: Whether the scenario made that call.
  private func callFails(_ number: Int, in scenario: Scenario, code: CInt) async throws -> Bool {
    let temporary = TemporaryFolder(inMemory: true)
    let file = temporary.url.appending(path: "text.0.value")
    let corruptBytes = Data("corrupt".utf8)
    let injector = FaultInjector(code: code)
    let store = FileStore(folder: temporary.url, fileSystem: injector.fileSystem)
    let other = FileStore(folder: temporary.url)
    if scenario != .firstSave {
      try await store.save("old", for: key)
    }
    switch scenario {
    case .saveOverCorruptBytes, .loadOfCorruptBytes: try corruptBytes.write(to: file)
    case .saveOverExternalChange: try await other.save("theirs", for: key)
    default: break
    }
    var old: String?
    switch scenario {
    case .firstSave, .saveOverCorruptBytes, .loadOfCorruptBytes: old = nil
    case .saveOverExternalChange: old = "theirs"
    default: old = "old"
    }

    injector.arm(number)
    let expected: String?
    do throws(StoreError) {
      let found = try await perform(scenario, in: store)
      // An observation leaves out a value that can't be read.
      expected = scenario == .observe ? old : found
      if scenario == .observe, found == nil {
        #expect(code != EINTR)
        await expectUnreadableEvent(code, in: store)
      }
    } catch .undecodable {
      expected = nil
    } catch {
      #expect(code != EINTR, "\(error)")
      #expect(error.systemError?.code == code, "\(error)")
      expected = old
    }
    let hasFailed = injector.disarm()

    // If the scenario's method failed before it could quarantine the corrupt bytes, this load does so and throws.
    let loadHasQuarantined: Bool
    let loaded: StoredValue<String>?
    do throws(StoreError) {
      loaded = try await store.load(key)
      loadHasQuarantined = false
    } catch {
      guard case .undecodable = error else { throw error }
      loaded = nil
      loadHasQuarantined = true
    }
    #expect(loaded?.value == expected, "call \(number)")
    #expect(try await FileStore(folder: temporary.url).load(key)?.value == expected, "call \(number)")
    if scenario == .saveOverCorruptBytes || scenario == .loadOfCorruptBytes {
      let quarantined = try FileManager.default.contentsOfDirectory(at: temporary.url, includingPropertiesForKeys: nil)
        .filter { $0.lastPathComponent.contains(".corrupt-") }
      #expect(
        try quarantined.map { try Data(contentsOf: $0) } == [corruptBytes],
        "call \(number), quarantined by the load: \(loadHasQuarantined)")
    }
    let next = try await store.save("next", for: key)
    #expect(try await store.load(key) == next)
    #expect(try await FileStore(folder: temporary.url).load(key)?.value == "next")
    let temporaryFiles = try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false))
      .filter { $0.hasPrefix(".DataStore") }
    // If the call that failed was the removal of a temporary file, that file may remain.
    #expect(temporaryFiles.count <= 1)
    return hasFailed
  }

  /// Expects the store's first event to report an unreadable value.
  ///
  /// The store has sent the event already, and replays it to the new subscriber.
  private func expectUnreadableEvent(_ code: CInt, in store: FileStore) async {
    var events = store.events.makeAsyncIterator()
    guard case .valueUnreadable(key.keyName, let error) = await events.next() else {
      Issue.record("no event about an unreadable value")
      return
    }
    #expect(error.systemError?.code == code)
  }

  /// Calls the method of a scenario.
  ///
  /// - Returns: The value that must be stored afterwards; for an observation, the value that it contains, if any.
  private func perform(_ scenario: Scenario, in store: FileStore) async throws(StoreError) -> String? {
    switch scenario {
    case .save, .firstSave, .saveOverCorruptBytes, .saveOverExternalChange:
      return try await store.save("new", for: key).value
    case .remove:
      try await store.remove(key)
      return nil
    case .load, .loadOfCorruptBytes:
      return try await store.load(key)?.value
    case .observe:
      return try await store.observe(collection: "text", as: String.self).stored.first?.stored.value
    }
  }
}

extension StoreError {
  /// The error of the system call that failed, if there is one.
  fileprivate var systemError: SystemError? {
    switch self {
    case .readFailed(let error), .writeFailed(let error), .removeFailed(let error): error
    default: nil
    }
  }
}
