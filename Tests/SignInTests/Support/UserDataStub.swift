import Multicast
import SignIn

/// What is kept of users, as far as a test says, with a log of what it was asked for.
final class UserDataStub: UserDataType {
  private let calls = Lock<[String]>([])
  private let onErase: @Sendable (_ discardsUnsent: Bool) async throws(UserDataError) -> Void

  init(erase: @escaping @Sendable (_ discardsUnsent: Bool) async throws(UserDataError) -> Void = { _ in }) {
    onErase = erase
  }

  /// As many changes wait as a test says.
  convenience init(unsentCount: Int) {
    self.init(erase: { discardsUnsent throws(UserDataError) in
      if unsentCount > 0, !discardsUnsent { throw .unsent(unsentCount) }
    })
  }

  /// What it was asked for, in order.
  var log: [String] { calls.withLock { $0 } }

  func open(uid: String) {
    calls.withLock { $0.append("open \(uid)") }
  }

  func erase(uid: String, discardingUnsent discardsUnsent: Bool) async throws(UserDataError) {
    calls.withLock { $0.append(discardsUnsent ? "discard \(uid)" : "erase \(uid)") }
    try await onErase(discardsUnsent)
  }
}
