import DataStore
import Foundation
import Multicast
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct FileLockTests {
  /// The counts cover the whole process, so this test reads them in a process of its own.
  @Test func `After a lock of a file was held and released, as many channels are alive as before`() async {
    await #expect(processExitsWith: .success) {
      let temporary = TemporaryFolder()
      do {
        let store = FileStore(folder: temporary.url)
        guard case .acquired(let lock) = try await store.acquireLock("task") else { preconditionFailure() }
        guard case .held = try await store.acquireLock("task") else { preconditionFailure() }
        extendLifetime(lock)
      }
      precondition(MulticastDiagnostics.liveChannels == 0)
      extendLifetime(temporary)
    }
  }
}
