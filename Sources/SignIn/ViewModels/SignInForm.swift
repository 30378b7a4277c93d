/// The content of the sign-in screen as a value, which derives every output from the inputs, the state and the report.
struct SignInForm: Equatable {
  /// A result of an earlier call that the inputs and the state don't show.
  enum Report: Equatable {
    case signedOut
    case failedToSignIn(SignInError)
    case failedToSignOut(SignInError)
  }

  /// The minimum length of a username in characters, as in the original sign-in app, which this module replaces.
  static let minimumUsernameLength = 4

  private(set) var state: SignState
  var username = "" { didSet { report = nil } }
  var password = Password() { didSet { report = nil } }
  var report: Report?

  init(state: SignState) {
    self.state = state
  }

  /// Sets the next state, and updates the report and the password.
  ///
  /// A sign-out is reported, and clears the password. Once a user is signed in, a report of a sign-out or of a failed
  /// sign-in is discarded.
  ///
  /// A failed call may report its error before or after the state that follows the call; the result is the same.
  mutating func update(_ next: SignState) {
    switch (state, next) {
    case (.signingOut, .unsigned), (.signed, .unsigned):
      // Otherwise the next person at the screen could sign in with the credentials of the previous user.
      password = Password()
      report = .signedOut
    case (_, .signed):
      switch report {
      case .signedOut, .failedToSignIn: report = nil
      case .failedToSignOut, nil: break
      }
    default: break
    }
    state = next
  }

  private var isUsernameLongEnough: Bool { username.count >= Self.minimumUsernameLength }

  var isUsernameEnabled: Bool { state == .unsigned }

  var isPasswordEnabled: Bool { isUsernameLongEnough && state == .unsigned }

  var isSubmitEnabled: Bool {
    switch state {
    case .unsigned: isUsernameLongEnough && !password.isEmpty
    case .signed: true
    case .signingIn, .signingOut: false
    }
  }

  /// Whether a sign-out was refused because it would lose changes.
  ///
  /// The next sign-out then discards the changes.
  var asksToDiscard: Bool {
    if case (.signed, .failedToSignOut(.userData(.unsent))) = (state, report) { true } else { false }
  }

  var submitTitle: String {
    if case .signed = state { asksToDiscard ? "Discard and SignOut" : "SignOut" } else { "Submit" }
  }

  /// The message of the original sign-in app, except that a failure shows the English description of its error.
  ///
  /// As in that app, “应该大于4位” asks for more than four characters, although four are enough.
  var message: String {
    switch (state, report) {
    case (_, .failedToSignIn(let error)), (_, .failedToSignOut(let error)): error.description
    case (.signed(let user), _): "当前用户: \(user.username)\n登录时间: \(user.date)"
    case (_, .signedOut): "已经退出登录"
    case (_, nil) where username.isEmpty: "请填写用户名"
    case (_, nil) where !isUsernameLongEnough: "用户名太短, 应该大于4位"
    case (_, nil) where password.isEmpty: "请填写密码"
    case (_, nil): ""
    }
  }
}
