import Foundation
import Multicast
import MulticastTesting
import SignIn
import Testing

@Suite(.timeLimit(.minutes(15))) struct InMemorySignInSessionTests {
  /// 2018-12-01 12:00:00 UTC.
  private static let start = Date(timeIntervalSince1970: 1_543_665_600)
  private static let accounts = [
    InMemorySignInSession.Account(uid: "007", username: "jake", password: Password("secret"))
  ]

  /// Returns a clock that advances by one second with each call.
  private func makeTickingClock() -> @Sendable () -> Date {
    let seconds = SecondsCounter()
    return { Self.start.addingTimeInterval(seconds.next()) }
  }

  /// A counter of seconds whose first number is 0.
  private final class SecondsCounter: Sendable {
    private let last = Lock(-1.0)
    func next() -> Double {
      last.withLock { last in
        last += 1
        return last
      }
    }
  }

  @Test func `A username and its password identify the user, and the clock gives the time of the sign-in`()
    async throws
  {
    let session = InMemorySignInSession(accounts: Self.accounts, now: { Self.start })
    let user = try await session.signIn(username: "jake", password: Password("secret"))
    #expect(user == User(uid: "007", username: "jake", date: Self.start))
    // The sign-out of an existing user doesn't throw.
    try await session.signOut(uid: "007")
  }

  @Test func `A wrong password and an unknown username throw the same error, and an unknown id throws its own`() async {
    let session = InMemorySignInSession(accounts: Self.accounts)
    await #expect(throws: SignInSessionError.wrongUsernameOrPassword) {
      try await session.signIn(username: "jake", password: Password("Secret"))
    }
    await #expect(throws: SignInSessionError.wrongUsernameOrPassword) {
      try await session.signIn(username: "mei!", password: Password("secret"))
    }
    await #expect(throws: SignInSessionError.unknownUser(uid: "9")) { try await session.signOut(uid: "9") }
    await #expect(throws: SignInSessionError.unknownUser(uid: "9")) { try await session.user(uid: "9") }
  }

  @Test func `Sign-ins are listed newest first, in pages`() async throws {
    let session = InMemorySignInSession(accounts: Self.accounts, now: makeTickingClock())
    for _ in 0..<3 { _ = try await session.signIn(username: "jake", password: Password("secret")) }
    let dates = (0..<3).map { Self.start.addingTimeInterval(Double(2 - $0)) }
    #expect(try await session.signInDates(uid: "007", before: nil, limit: 2) == Array(dates.prefix(2)))
    #expect(try await session.signInDates(uid: "007", before: dates[1], limit: 2) == [dates[2]])
    #expect(try await session.user(uid: "007").date == dates[0])
  }

  @Test func `A cancelled call throws`() async {
    let gate = Gate()
    let session = InMemorySignInSession(accounts: Self.accounts, answering: { await gate.pass() })
    let signIn = Task { try await session.signIn(username: "jake", password: Password("secret")) }
    await gate.arrivals()
    signIn.cancel()
    await #expect(throws: SignInSessionError.cancelled) { try await signIn.value }
  }
}
