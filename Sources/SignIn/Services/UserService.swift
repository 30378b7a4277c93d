public import Foundation
public import Multicast

/// Signs users in and out on a server of accounts, and broadcasts who is signed in.
///
/// An actor: a state is checked, changed and published in one step, so of many calls at once one goes to the server and
/// the other calls are refused.
///
/// - **Ordering**: All observers see the same states in the same order, each once.
/// - **Lifetime**: Streams do not keep the service alive. They finish when it is released.
public actor UserService: UserServiceType {
  private let session: any SignInSessionType
  private let userData: [any UserDataType]
  private let pageSize: Int
  private let states = CurrentValueRelay<SignState>(.unsigned, buffering: .unbounded)
  private let recent = MulticastRelay<[Date]>(replay: 1, buffering: .latest)
  private var listed: [Date] = []
  /// Which sign-in it is that lasts: the same user may come back, and what was asked before is old then.
  private var signIns = 0
  private var lastUpdate = 0
  /// The newest of the updates that were broadcast, counted in the order they were asked for.
  private var shownUpdate = 0

  /// Creates a service on a server of accounts, with no user signed in.
  ///
  /// - Parameters:
  ///   - session: The server.
  ///   - userData: What is kept of users on this device: opened at a sign-in, and erased at a sign-out.
  ///   - pageSize: How many sign-ins one load asks for.
  public init(session: any SignInSessionType, userData: [any UserDataType] = [], pageSize: Int = 20) {
    self.session = session
    self.userData = userData
    self.pageSize = pageSize
  }

  /// Whether a user is signed in now.
  public nonisolated var signState: SignState { states.value }

  /// The current state first, then every later one, in order.
  ///
  /// Nothing is dropped, however slow a reader is.
  public nonisolated var signStates: MulticastStream<SignState, Never> { states.stream }

  /// When the signed-in user signed in, newest first, as far as it was loaded.
  public nonisolated var recentSignIns: MulticastStream<[Date], Never> { recent.stream }

  /// Signs a user in.
  @discardableResult
  public func performSignin(username: String, password: Password) async throws(SignInError) -> User {
    guard signState == .unsigned else { throw .refused(signState) }
    guard !Task.isCancelled else { throw .cancelled }
    states.send(.signingIn)
    do throws(SignInSessionError) {
      let user = try await session.signIn(username: username, password: password)
      // No caller waits for it any more, so it must not sign a user in.
      guard !Task.isCancelled else { throw .cancelled }
      await openUserData(of: user)
      signIns += 1
      states.send(.signed(user))
      return user
    } catch {
      states.send(.unsigned)
      throw SignInError(error)
    }
  }

  /// Signs the user out, unless that would lose something.
  public func performSignout() async throws(SignInError) {
    try await performSignout(discardingUnsent: false)
  }

  /// Signs the user out, and erases what is kept of the user on this device.
  ///
  /// Erases first, because what waits can be sent only while the server takes the user for signed in. If a sign-out fails
  /// after that, what was erased is there to be fetched again.
  public func performSignout(discardingUnsent discardsUnsent: Bool) async throws(SignInError) {
    let user = try signedUser()
    guard !Task.isCancelled else { throw .cancelled }
    states.send(.signingOut)
    do throws(SignInError) {
      try await eraseUserData(of: user, discardingUnsent: discardsUnsent)
      try await signOutOfServer(user)
    } catch {
      await openUserData(of: user)
      states.send(.signed(user))
      throw error
    }
    listed = []
    recent.send(listed)
    // What belonged to one user is not for the next.
    recent.resetReplay()
    states.send(.unsigned)
  }

  /// Asks the server who the signed-in user is now, and broadcasts it as the state.
  public func updateUser() async throws(SignInError) {
    let user = try signedUser()
    let signIn = signIns
    lastUpdate += 1
    let update = lastUpdate
    let updated = try await fetchUser(uid: user.uid)
    try require(signIn)
    // One that was asked for later may have been answered before.
    guard update > shownUpdate else { return }
    shownUpdate = update
    states.send(.signed(updated))
  }

  /// Asks the server for the newest sign-ins of the signed-in user, and broadcasts them in the place of the list.
  public func reloadRecentSignIns() async throws(SignInError) {
    let user = try signedUser()
    let signIn = signIns
    let dates = try await signInDates(of: user, before: nil)
    try require(signIn)
    list(dates)
  }

  /// Asks the server for the sign-ins before those in the list, and broadcasts the longer list.
  public func loadMoreRecentSignIns() async throws(SignInError) {
    let user = try signedUser()
    let signIn = signIns
    let before = listed
    let dates = try await signInDates(of: user, before: before.last)
    try require(signIn)
    if listed == before { list(before + dates) }
  }

  /// Asks the server about any user, without notifying observers.
  public func fetchUser(uid: String) async throws(SignInError) -> User {
    do throws(SignInSessionError) {
      return try await session.user(uid: uid)
    } catch {
      throw SignInError(error)
    }
  }

  private func openUserData(of user: User) async {
    for data in userData { await data.open(uid: user.uid) }
  }

  private func eraseUserData(of user: User, discardingUnsent discardsUnsent: Bool) async throws(SignInError) {
    do throws(UserDataError) {
      for data in userData { try await data.erase(uid: user.uid, discardingUnsent: discardsUnsent) }
    } catch {
      throw SignInError(error)
    }
  }

  private func signOutOfServer(_ user: User) async throws(SignInError) {
    do throws(SignInSessionError) {
      try await session.signOut(uid: user.uid)
    } catch {
      throw SignInError(error)
    }
  }

  private func signInDates(of user: User, before: Date?) async throws(SignInError) -> [Date] {
    do throws(SignInSessionError) {
      return try await session.signInDates(uid: user.uid, before: before, limit: pageSize)
    } catch {
      throw SignInError(error)
    }
  }

  private func list(_ dates: [Date]) {
    listed = dates
    recent.send(dates)
  }

  private func signedUser() throws(SignInError) -> User {
    guard case .signed(let user) = signState else { throw .refused(signState) }
    return user
  }

  /// Refuses an answer that came after its user had signed out, even if another user has signed in since.
  private func require(_ signIn: Int) throws(SignInError) {
    _ = try signedUser()
    guard signIns == signIn else { throw .refused(signState) }
  }
}
