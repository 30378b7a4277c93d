public import Foundation

/// An in-process account server for demonstrations, previews and tests.
public actor InMemorySignInSession: SignInSessionType {
  /// A user of the server, with a password.
  public struct Account: Sendable, Equatable {
    /// The identifier of the user.
    public let uid: String
    /// The name the user signs in with.
    public let username: String
    /// The user's password.
    public let password: Password

    /// Creates an account.
    public init(uid: String, username: String, password: Password) {
      self.uid = uid
      self.username = username
      self.password = password
    }
  }

  private let accounts: [Account]
  private let now: @Sendable () -> Date
  private let answering: @Sendable () async -> Void
  private var signInDatesByUID: [String: [Date]] = [:]

  /// Creates a server.
  ///
  /// - Parameters:
  ///   - accounts: The accounts of the server.
  ///   - now: A closure that returns the current time, for the date of a sign-in.
  ///   - answering: A closure that runs before each call is processed, to simulate the delay of a network.
  public init(
    accounts: [Account], now: @escaping @Sendable () -> Date = { Date() },
    answering: @escaping @Sendable () async -> Void = {}
  ) {
    self.accounts = accounts
    self.now = now
    self.answering = answering
  }

  /// Signs a user in if the username and the password belong together.
  public func signIn(username: String, password: Password) async throws(SignInSessionError) -> User {
    try await delayAnswer()
    guard let account = accounts.first(where: { $0.username == username }), account.password == password else {
      throw .wrongUsernameOrPassword
    }
    let date = now()
    signInDatesByUID[account.uid, default: []].insert(date, at: 0)
    return User(uid: account.uid, username: account.username, date: date)
  }

  /// Signs a user out.
  ///
  /// The server doesn't record who is signed in, so the call only checks that the user exists.
  public func signOut(uid: String) async throws(SignInSessionError) {
    try await delayAnswer()
    _ = try account(uid: uid)
  }

  /// Returns a user, with the date of the last sign-in.
  ///
  /// If the user has never signed in, the date is `Date.distantPast`.
  public func user(uid: String) async throws(SignInSessionError) -> User {
    try await delayAnswer()
    let account = try account(uid: uid)
    return User(uid: uid, username: account.username, date: signInDatesByUID[uid]?.first ?? .distantPast)
  }

  /// Returns the times at which a user signed in, newest first.
  public func signInDates(uid: String, before: Date?, limit: Int) async throws(SignInSessionError) -> [Date] {
    try await delayAnswer()
    _ = try account(uid: uid)
    return Array((signInDatesByUID[uid] ?? []).filter { date in before.map { date < $0 } ?? true }.prefix(limit))
  }

  private func delayAnswer() async throws(SignInSessionError) {
    await answering()
    if Task.isCancelled { throw .cancelled }
  }

  private func account(uid: String) throws(SignInSessionError) -> Account {
    guard let account = accounts.first(where: { $0.uid == uid }) else { throw .unknownUser(uid: uid) }
    return account
  }
}
