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
  /// doesn't sign the user in, even if the server's reply has arrived, unless the service has already begun to open the
  /// user's data; see ``UserDataType/open(uid:)``.
  ///
  /// - Throws: A ``SignInError``. If the state isn't `unsigned`, ``SignInError/refused(_:)`` at once, without a change
  ///   of state.
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
  /// - Throws: A ``SignInError``. If no user is signed in, ``SignInError/refused(_:)`` at once, without a change of
  ///   state.
  func performSignout(discardingUnsent discardsUnsent: Bool) async throws(SignInError)

  /// Fetches the signed-in user from the server, and broadcasts it as the state.
  ///
  /// If several calls are in flight, a reply to an earlier call never replaces one to a later call.
  ///
  /// - Throws: A ``SignInError``; nothing is broadcast. ``SignInError/refused(_:)`` if no user is signed in, or if the
  ///   user is signing out or has signed out when the reply arrives, even if a user has signed in again.
  func updateUser() async throws(SignInError)

  /// Fetches the newest sign-ins of the signed-in user, and broadcasts them as the new list.
  ///
  /// - Throws: A ``SignInError``; nothing is broadcast.
  func reloadRecentSignIns() async throws(SignInError)

  /// Fetches the sign-ins before those in the list, and broadcasts the extended list.
  ///
  /// If two of these loads are in flight, the first reply counts. A reply that no longer fits the list isn't broadcast.
  ///
  /// - Throws: A ``SignInError``; nothing is broadcast.
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
