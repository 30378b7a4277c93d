public import Foundation
public import Multicast

/// The single source of truth for the signed-in user, shared by all screens.
///
/// Its streams broadcast to all subscribers, and each call of a method acts once, however many subscribers there are.
/// The first word of a method's name says what subscribers see:
///
/// - `reload…`, `loadMore…` and `update…` fetch from the server, and broadcast the result.
/// - `fetch…` fetches from the server, and returns the result to the caller only.
/// - `perform…` acts, and broadcasts the states it passes through.
///
/// Cancelling the calling task ends a call, which then throws ``SignInError/cancelled`` unless the method says
/// otherwise. Streams don't keep the service alive, and finish when it is released.
public protocol UserServiceType: Sendable {
  /// The current state.
  var signState: SignState { get }

  /// The current state first, then every later one, in order.
  ///
  /// Nothing is dropped, however slow a subscriber is.
  var signStates: MulticastStream<SignState, Never> { get }

  /// The times at which the signed-in user signed in, newest first, as far as they are loaded.
  ///
  /// A new subscriber receives the last list, or waits if no list was loaded. A sign-out sends an empty list to the
  /// current subscribers, and nothing to later ones.
  var recentSignIns: MulticastStream<[Date], Never> { get }

  /// Signs a user in.
  ///
  /// Subscribers see `signingIn`, then `signed`, or `unsigned` if the call fails or is cancelled. A cancelled call
  /// doesn't sign the user in, even if the server's reply has arrived. But once the service has begun to open the
  /// user's data, the call succeeds, even if it is cancelled; see ``UserDataType/open(uid:)``.
  ///
  /// - Throws: A ``SignInError``. The call throws at once, without a change of state, if the state isn't `unsigned`
  ///   (``SignInError/refused(_:)``) or the calling task is already cancelled (``SignInError/cancelled``).
  @discardableResult
  func performSignin(username: String, password: Password) async throws(SignInError) -> User

  /// Signs the user out, unless that would lose changes.
  ///
  /// Equivalent to ``performSignout(discardingUnsent:)`` with `false`.
  ///
  /// - Throws: A ``SignInError``.
  func performSignout() async throws(SignInError)

  /// Signs the user out, and erases the user's data on this device.
  ///
  /// Subscribers see `signingOut`, then `unsigned`, or `signed` if the call fails or is cancelled. Once the server has
  /// signed the user out, the call succeeds, even if the calling task is cancelled.
  ///
  /// - Parameter discardsUnsent: Whether to discard changes that the server doesn't have. If it is `false` and there
  ///   are any, the user stays signed in, and the call throws their number as ``UserDataError/unsent(_:)`` in
  ///   ``SignInError/userData(_:)``.
  /// - Throws: A ``SignInError``. The call throws at once, without a change of state, if no user is signed in
  ///   (``SignInError/refused(_:)``) or the calling task is already cancelled (``SignInError/cancelled``).
  func performSignout(discardingUnsent discardsUnsent: Bool) async throws(SignInError)

  /// Fetches the signed-in user from the server, and broadcasts it as the state.
  ///
  /// If several calls are in flight, the reply to an earlier call never replaces the reply to a later call.
  ///
  /// - Throws: A ``SignInError``; nothing is broadcast then. It is ``SignInError/refused(_:)`` if no user is signed in,
  ///   or if the reply arrives during a sign-out or after a successful one, even if a user has signed in again.
  func updateUser() async throws(SignInError)

  /// Fetches the newest sign-ins of the signed-in user, and broadcasts them as the new list.
  ///
  /// - Throws: A ``SignInError``; nothing is broadcast then.
  func reloadRecentSignIns() async throws(SignInError)

  /// Fetches the sign-ins before those in the list, and broadcasts the extended list.
  ///
  /// A reply is discarded if the list has changed since the call. Two calls in flight therefore append the same
  /// sign-ins only once.
  ///
  /// - Throws: A ``SignInError``; nothing is broadcast then.
  func loadMoreRecentSignIns() async throws(SignInError)

  /// Fetches any user from the server, without notifying subscribers.
  ///
  /// - Throws: A ``SignInError``.
  func fetchUser(uid: String) async throws(SignInError) -> User
}

extension UserServiceType {
  /// Signs the user out with ``performSignout()``, ignoring the argument, for services without data on this device.
  public func performSignout(discardingUnsent discardsUnsent: Bool) async throws(SignInError) {
    try await performSignout()
  }
}
