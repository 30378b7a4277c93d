public import Multicast
internal import Synchronization

/// The token of the user who is signed in, which the requests of a client share.
public final class Session: Sendable {
  private let currentToken = Mutex<String?>(nil)
  private let relay = CurrentValueRelay(false)

  /// Whether a user is signed in: the present value first, then every change.
  ///
  /// An app shows its sign-in screen on `false`. After the sign-in, it calls `credentialsChanged(userID:)` of each
  /// repository.
  public var isSignedIn: MulticastStream<Bool, Never> { relay.stream }

  var token: String? { currentToken.withLock { $0 } }

  /// Uses a token, for example one that the app has kept in the keychain.
  public func signIn(token: String) {
    currentToken.withLock {
      // Sent under the lock, so that the last value is that of the present token.
      $0 = token
      relay.send(true)
    }
  }

  /// Forgets a token that the server has rejected, unless there is a newer one.
  func reject(_ token: String?) {
    currentToken.withLock {
      guard $0 == token, token != nil else { return }
      $0 = nil
      relay.send(false)
    }
  }
}
