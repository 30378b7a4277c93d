/// The state of signing in and out.
///
/// `unsigned` → `signingIn` → `signed` → `signingOut` → `unsigned`. A sign-in or sign-out that fails or is cancelled
/// restores the state before it.
public enum SignState: Sendable, Hashable {
  /// No user is signed in.
  case unsigned
  /// A sign-in is in flight.
  case signingIn
  /// A user is signed in.
  case signed(User)
  /// A sign-out is in flight.
  case signingOut

  /// Whether a sign-in or a sign-out is in flight.
  public var isBusy: Bool { self == .signingIn || self == .signingOut }
}

extension SignState: CustomStringConvertible {
  /// The name of the state, and the name of the signed-in user.
  public var description: String {
    switch self {
    case .unsigned: "unsigned"
    case .signingIn: "signingIn"
    case .signed(let user): "signed(\(user.username))"
    case .signingOut: "signingOut"
    }
  }
}
