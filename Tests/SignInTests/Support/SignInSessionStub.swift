import Foundation
import Multicast
import SignIn

/// A session that replies with the results of closures, and counts its sign-in requests.
final class SignInSessionStub: SignInSessionType {
  /// 2018-12-01 12:00:00 UTC.
  static let date = Date(timeIntervalSince1970: 1_543_665_600)
  static let user = User(uid: "007", username: "jake", date: date)

  private let requestCount = Lock(0)
  private let onSignIn: @Sendable () async throws(SignInSessionError) -> User
  private let onSignOut: @Sendable () async throws(SignInSessionError) -> Void
  private let onUser: @Sendable () async throws(SignInSessionError) -> User
  private let onDates: @Sendable (Date?, Int) async throws(SignInSessionError) -> [Date]

  var signInRequestCount: Int { requestCount.withLock { $0 } }

  init(
    signIn: @escaping @Sendable () async throws(SignInSessionError) -> User = { SignInSessionStub.user },
    signOut: @escaping @Sendable () async throws(SignInSessionError) -> Void = {},
    user: @escaping @Sendable () async throws(SignInSessionError) -> User = { SignInSessionStub.user },
    dates: @escaping @Sendable (Date?, Int) async throws(SignInSessionError) -> [Date] = { before, limit in
      let allDates = (0..<5).map { SignInSessionStub.date.addingTimeInterval(Double(-$0)) }
      return Array(allDates.filter { date in before.map { date < $0 } ?? true }.prefix(limit))
    }
  ) {
    onSignIn = signIn
    onSignOut = signOut
    onUser = user
    onDates = dates
  }

  func signIn(username: String, password: Password) async throws(SignInSessionError) -> User {
    requestCount.withLock { $0 += 1 }
    return try await onSignIn()
  }

  func signOut(uid: String) async throws(SignInSessionError) { try await onSignOut() }

  func user(uid: String) async throws(SignInSessionError) -> User { try await onUser() }

  func signInDates(uid: String, before: Date?, limit: Int) async throws(SignInSessionError) -> [Date] {
    try await onDates(before, limit)
  }
}

extension UserService {
  /// Signs the stub's user in.
  func signIn() async throws(SignInError) {
    try await performSignin(username: "jake", password: Password("secret"))
  }
}

extension AsyncSequence where Failure == Never, Element: Sendable {
  /// Waits until the sequence finishes, and returns all its elements.
  func all() async -> [Element] {
    var elements: [Element] = []
    for await element in self { elements.append(element) }
    return elements
  }
}
