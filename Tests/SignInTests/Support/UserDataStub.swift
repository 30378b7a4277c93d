import Multicast
import SignIn

/// User data that records the calls it receives, and whose erasure a test controls.
final class UserDataStub: UserDataType {
  private let calls = Lock<[String]>([])
  private let onErase: @Sendable (_ discardsUnsent: Bool) async throws(UserDataError) -> Void

  init(erase: @escaping @Sendable (_ discardsUnsent: Bool) async throws(UserDataError) -> Void = { _ in }) {
    onErase = erase
  }

  /// Creates user data with a number of unsent changes.
  convenience init(unsentCount: Int) {
    self.init(erase: { discardsUnsent throws(UserDataError) in
      if unsentCount > 0, !discardsUnsent { throw .unsent(unsentCount) }
    })
  }

  /// All calls in order: `open UID`, `erase UID`, or `discard UID` for an erasure that discards unsent changes.
  var log: [String] { calls.withLock { $0 } }

  func open(uid: String) {
    calls.withLock { $0.append("open \(uid)") }
  }

  func erase(uid: String, discardingUnsent discardsUnsent: Bool) async throws(UserDataError) {
    calls.withLock { $0.append(discardsUnsent ? "discard \(uid)" : "erase \(uid)") }
    try await onErase(discardsUnsent)
  }
}
