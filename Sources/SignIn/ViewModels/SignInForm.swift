/// What the sign-in screen shows, as a value: the inputs and the state in, every output out.
struct SignInForm: Equatable {
  /// What there is to report that neither the inputs nor the state show.
  enum Report: Equatable {
    case signedOut
    case failedToSignIn(SignInError)
    case failedToSignOut(SignInError)
  }

  static let minimumUsernameLength = 4

  private(set) var state: SignState
  var username = "" { didSet { report = nil } }
  var password = Password() { didSet { report = nil } }
  var report: Report?

  init(state: SignState) {
    self.state = state
  }

  /// Takes the next state, and forgets a report that does not fit it, and the password of who has signed out.
  ///
  /// Whether the caller of a failed call hears of the failure before or after the state that follows it makes no
  /// difference.
  mutating func follow(_ next: SignState) {
    switch (state, next) {
    case (.signingOut, .unsigned), (.signed, .unsigned):
      // Otherwise the next user would sign in with the credentials of the one before.
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

  /// Whether a sign-out was refused because it would lose changes, so that the next one discards them.
  var asksToDiscard: Bool {
    if case (.signed, .failedToSignOut(.userData(.unsent))) = (state, report) { true } else { false }
  }

  var submitTitle: String {
    if case .signed = state { asksToDiscard ? "Discard and SignOut" : "SignOut" } else { "Submit" }
  }

  /// The texts of the original app, which counts a name of four characters as long enough too.
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
