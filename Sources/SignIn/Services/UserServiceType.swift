public import Foundation
public import Multicast

/// The one source of truth for who is signed in, shared by every screen.
///
/// Its properties broadcast; its functions act once. The name of a function says what observers see of it:
///
/// - `reload…`, `loadMore…` and `update…` ask the server, and broadcast what it answers.
/// - `fetch…` asks the server, and answers the caller alone: no observer sees anything.
/// - `perform…` acts, and observers see the states it goes through.
public protocol UserServiceType: Sendable {
  /// Whether a user is signed in now.
  var signState: SignState { get }

  /// The current state first, then every later one, in order.
  var signStates: MulticastStream<SignState, Never> { get }

  /// When the signed-in user signed in, newest first, as far as it was loaded.
  ///
  /// A reader that comes late gets the last list; one that comes before anything was loaded waits. At a sign-out
  /// subscribers get an empty list, and later ones nothing.
  var recentSignIns: MulticastStream<[Date], Never> { get }

  /// Signs a user in.
  ///
  /// Observers see `signingIn`, then `signed`; or `unsigned` when it fails or is cancelled. To be cancelled is no
  /// success, even where the server's answer was on its way.
  ///
  /// - Throws: ``SignInError``; ``SignInError/refused(_:)`` at once, without a change of state, unless no user is
  ///   signed in.
  @discardableResult
  func performSignin(username: String, password: Password) async throws(SignInError) -> User

  /// Signs the user out, unless that would lose something: as ``performSignout(discardingUnsent:)`` with `false`.
  ///
  /// - Throws: ``SignInError``.
  func performSignout() async throws(SignInError)

  /// Signs the user out, and erases what is kept of the user on this device.
  ///
  /// Observers see `signingOut`, then `unsigned`; or `signed` when it fails or is cancelled. What the server has done
  /// counts as done, also when the calling task is cancelled meanwhile.
  ///
  /// - Parameter discardsUnsent: Whether changes that the server doesn't have are lost. Otherwise they keep the user
  ///   signed in, and are counted in ``UserDataError/unsent(_:)``.
  /// - Throws: ``SignInError``; ``SignInError/refused(_:)`` at once, without a change of state, unless a user is signed
  ///   in.
  func performSignout(discardingUnsent discardsUnsent: Bool) async throws(SignInError)

  /// Asks the server who the signed-in user is now, and broadcasts it as the state.
  ///
  /// - Throws: ``SignInError``; then observers see nothing.
  func updateUser() async throws(SignInError)

  /// Asks the server for the newest sign-ins of the signed-in user, and broadcasts them in the place of the list.
  ///
  /// - Throws: ``SignInError``; then observers see nothing.
  func reloadRecentSignIns() async throws(SignInError)

  /// Asks the server for the sign-ins before those in the list, and broadcasts the longer list.
  ///
  /// Of two loads at once the first answer counts; an answer that no longer fits the list is not broadcast.
  ///
  /// - Throws: ``SignInError``; then observers see nothing.
  func loadMoreRecentSignIns() async throws(SignInError)

  /// Asks the server about any user, without notifying observers.
  ///
  /// - Throws: ``SignInError``.
  func fetchUser(uid: String) async throws(SignInError) -> User
}

extension UserServiceType {
  /// Signs the user out by ``performSignout()``: for services that keep nothing of users.
  public func performSignout(discardingUnsent discardsUnsent: Bool) async throws(SignInError) {
    try await performSignout()
  }
}
