public import Foundation
public import Multicast

/// A service that signs users in and out on an account server, and broadcasts the state.
///
/// - **Isolation**: The actor checks, changes and publishes the state in one step. If several sign-ins or sign-outs are
///   started at once, at most one of them reaches the server, and the others are refused.
/// - **Ordering**: All subscribers see the same states in the same order, each once.
/// - **Lifetime**: Streams don't keep the service alive. They finish when it is released.
public actor UserService: UserServiceType {
  private let session: any SignInSessionType
  private let userData: [any UserDataType]
  private let pageSize: Int
  private let states = CurrentValueRelay<SignState>(.unsigned, buffering: .unbounded)
  private let lists = MulticastRelay<[Date]>(replay: 1, buffering: .latest)
  /// The list of sign-ins that was broadcast last.
  private var lastList: [Date] = []
  /// The number of sign-ins so far, which identifies the current one.
  ///
  /// The id of the user can't identify it, because the same user may sign out and in again while a request is in
  /// flight.
  private var signInCount = 0
  /// The number of the newest call of ``updateUser()``, counted from 1.
  private var lastUpdateNumber = 0
  /// The number of the newest call of ``updateUser()`` whose result was broadcast.
  private var broadcastUpdateNumber = 0

  /// Creates a service for an account server, with no user signed in.
  ///
  /// - Parameters:
  ///   - session: The session with the server.
  ///   - userData: The data of users on this device, which is opened at a sign-in and erased at a sign-out.
  ///   - pageSize: The maximum number of sign-ins that one load fetches.
  public init(session: any SignInSessionType, userData: [any UserDataType] = [], pageSize: Int = 20) {
    self.session = session
    self.userData = userData
    self.pageSize = pageSize
  }

  /// The current state.
  public nonisolated var signState: SignState { states.value }

  /// The current state first, then every later one, in order.
  public nonisolated var signStates: MulticastStream<SignState, Never> { states.stream }

  /// The times at which the signed-in user signed in, newest first, as far as they are loaded.
  public nonisolated var recentSignIns: MulticastStream<[Date], Never> { lists.stream }

  /// Signs a user in.
  @discardableResult
  public func performSignin(username: String, password: Password) async throws(SignInError) -> User {
    guard signState == .unsigned else { throw .refused(signState) }
    guard !Task.isCancelled else { throw .cancelled }
    states.send(.signingIn)
    do throws(SignInSessionError) {
      let user = try await session.signIn(username: username, password: password)
      // A cancelled call must not sign a user in, because its caller no longer needs the result.
      guard !Task.isCancelled else { throw .cancelled }
      await openUserData(of: user)
      signInCount += 1
      states.send(.signed(user))
      return user
    } catch {
      states.send(.unsigned)
      throw SignInError(error)
    }
  }

  /// Signs the user out, unless that would lose changes.
  public func performSignout() async throws(SignInError) {
    try await performSignout(discardingUnsent: false)
  }

  /// Signs the user out, and erases the user's data on this device.
  ///
  /// Erases the data before signing out of the server, because the erasure may send changes that the server doesn't
  /// have, or fail because of them. Such changes can be sent only while the user is signed in on the server. If the
  /// sign-out fails after the erasure, the erased data can be fetched again, except for changes that were discarded.
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
    lastList = []
    lists.send(lastList)
    // Otherwise later subscribers would receive the empty list, although no list is loaded.
    lists.resetReplay()
    states.send(.unsigned)
  }

  /// Fetches the signed-in user from the server, and broadcasts it as the state.
  public func updateUser() async throws(SignInError) {
    let user = try signedUser()
    let signInNumber = signInCount
    lastUpdateNumber += 1
    let updateNumber = lastUpdateNumber
    let updatedUser = try await fetchUser(uid: user.uid)
    try requireCurrentSignIn(signInNumber)
    // A later update may have been answered first.
    guard updateNumber > broadcastUpdateNumber else { return }
    broadcastUpdateNumber = updateNumber
    states.send(.signed(updatedUser))
  }

  /// Fetches the newest sign-ins of the signed-in user, and broadcasts them as the new list.
  public func reloadRecentSignIns() async throws(SignInError) {
    let user = try signedUser()
    let signInNumber = signInCount
    let dates = try await fetchSignInDates(of: user, before: nil)
    try requireCurrentSignIn(signInNumber)
    broadcastList(dates)
  }

  /// Fetches the sign-ins before those in the list, and broadcasts the extended list.
  public func loadMoreRecentSignIns() async throws(SignInError) {
    let user = try signedUser()
    let signInNumber = signInCount
    let listAtCall = lastList
    let dates = try await fetchSignInDates(of: user, before: listAtCall.last)
    try requireCurrentSignIn(signInNumber)
    if lastList == listAtCall { broadcastList(listAtCall + dates) }
  }

  /// Fetches any user from the server, without notifying subscribers.
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

  private func fetchSignInDates(of user: User, before: Date?) async throws(SignInError) -> [Date] {
    do throws(SignInSessionError) {
      return try await session.signInDates(uid: user.uid, before: before, limit: pageSize)
    } catch {
      throw SignInError(error)
    }
  }

  private func broadcastList(_ list: [Date]) {
    lastList = list
    lists.send(list)
  }

  private func signedUser() throws(SignInError) -> User {
    guard case .signed(let user) = signState else { throw .refused(signState) }
    return user
  }

  /// Throws unless the sign-in with this number is still the current one and no sign-out is in flight.
  private func requireCurrentSignIn(_ number: Int) throws(SignInError) {
    _ = try signedUser()
    guard signInCount == number else { throw .refused(signState) }
  }
}
