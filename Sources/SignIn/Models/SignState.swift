/// Whether a user is signed in.
///
/// `unsigned` → `signingIn` → `signed` → `signingOut` → `unsigned`. What fails or is cancelled on the way returns to
/// where it came from.
public enum SignState: Sendable, Hashable {
  /// No user is signed in.
  case unsigned
  /// A sign-in is in flight.
  case signingIn
  /// This user is signed in.
  case signed(User)
  /// A sign-out is in flight.
  case signingOut

  /// Whether a sign-in or a sign-out is in flight.
  public var isBusy: Bool { self == .signingIn || self == .signingOut }
}

extension SignState: CustomStringConvertible {
  /// The name of the state, and who is signed in.
  public var description: String {
    switch self {
    case .unsigned: "unsigned"
    case .signingIn: "signingIn"
    case .signed(let user): "signed(\(user.username))"
    case .signingOut: "signingOut"
    }
  }
}
