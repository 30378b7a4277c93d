internal import SignIn
internal import TerminalUI

/// What the sign-in screen on a terminal knows beside its view models: where the user is, and what happened last.
///
/// Pure: keys, forms and states go in; what is to be done and what is to be shown come out.
struct LiveSignInState {
  /// What a key asks for beyond the screen.
  enum Request: Equatable {
    case setUsername(String)
    case setPassword(Password)
    case submit
    /// Not to lose the changes that a sign-out would lose.
    case keepChanges
    case quit
  }

  /// What the view models show.
  struct Form {
    var username = ""
    var password = Password()
    var isUsernameEnabled = false
    var isPasswordEnabled = false
    var isSubmitEnabled = false
    var submitTitle = "Submit"
    /// Whether pressing the button loses changes.
    var asksToDiscard = false
    var isBusy = false
    /// Empty while it is hidden.
    var message = ""
    var recentSignIns: [String] = []
  }

  /// What happened last.
  private(set) var activity: String
  private var wantedFocus = SignInScreen.Control.username
  /// Whether the button was pressed and has not been answered.
  private var isSubmitting = false
  private let signedInKeys: [KeyHint]

  /// - Parameters:
  ///   - hint: What is said at first.
  ///   - signedInKeys: The keys that do something outside this screen while a user is signed in.
  init(hint: String, signedInKeys: [KeyHint] = []) {
    activity = hint
    self.signedInKeys = signedInKeys
  }

  // MARK: What happens

  /// Says that who is signed in has changed.
  ///
  /// - Returns: Whether the recent sign-ins are to be loaded.
  mutating func follow(_ state: SignState) -> Bool {
    activity = "state changed: \(state)"
    return if case .signed = state { true } else { false }
  }

  mutating func submitEnded() {
    isSubmitting = false
  }

  // MARK: Keys

  /// Moves, or says what the key asks for; `nil` for a key without a meaning.
  mutating func press(_ key: Key, in form: Form) -> Request? {
    switch key {
    case .escape: return form.asksToDiscard ? .keepChanges : .quit
    // What was filled in is what is sent, also where the keys behind Enter come with it.
    case _ where isSubmitting: return nil
    case .tab, .down: moveFocus(by: 1, in: form)
    case .backTab, .up: moveFocus(by: -1, in: form)
    case .enter where focus(in: form) == .username: moveFocus(by: 1, in: form)
    case .enter where form.isSubmitEnabled:
      isSubmitting = true
      return .submit
    default: return edit(with: key, in: form)
    }
    return nil
  }

  private func edit(with key: Key, in form: Form) -> Request? {
    switch focus(in: form) {
    case .username: TextField.text(form.username, after: key).map { .setUsername($0) }
    case .password: TextField.text(form.password.text, after: key).map { .setPassword(Password($0)) }
    case .button, nil: nil
    }
  }

  /// Where the user put it, or where it can be meanwhile.
  private func focus(in form: Form) -> SignInScreen.Control? {
    let enabled = form.enabled
    return enabled.contains(wantedFocus) ? wantedFocus : SignInScreen.Control.allCases.first(where: enabled.contains)
  }

  private mutating func moveFocus(by step: Int, in form: Form) {
    let controls = SignInScreen.Control.allCases.filter(form.enabled.contains)
    guard let focus = focus(in: form), let index = controls.firstIndex(of: focus) else { return }
    wantedFocus = controls[(index + step + controls.count) % controls.count]
  }

  // MARK: What to show

  func model(of form: Form) -> SignInScreen.Model {
    SignInScreen.Model(
      isSignedIn: form.isSignedIn, isBusy: form.isBusy, username: form.username,
      passwordLength: form.password.text.count, buttonTitle: form.submitTitle, enabled: form.enabled,
      focus: focus(in: form), message: form.message, recentSignIns: form.isSignedIn ? form.recentSignIns : [],
      activity: activity, keys: keys(in: form))
  }

  private func keys(in form: Form) -> [KeyHint] {
    var keys = [KeyHint(key: "esc", action: form.asksToDiscard ? "stay signed in" : "quit")]
    if form.enabled.count > 1 { keys.append(KeyHint(key: "tab", action: "next")) }
    let focus = focus(in: form)
    switch focus {
    case .username, .password:
      if form.isSubmitEnabled, focus == .password { keys.append(KeyHint(key: "enter", action: form.submitTitle)) }
      keys.append(KeyHint(key: "^U", action: "empty the field"))
    case .button: keys.append(KeyHint(key: "enter", action: form.submitTitle))
    case nil: break
    }
    if form.isSignedIn { keys += signedInKeys }
    return keys
  }
}

extension LiveSignInState.Form {
  /// Neither signed out nor on the way.
  fileprivate var isSignedIn: Bool { !isUsernameEnabled && !isBusy }

  fileprivate var enabled: Set<SignInScreen.Control> {
    var enabled: Set<SignInScreen.Control> = []
    if isUsernameEnabled { enabled.insert(.username) }
    if isPasswordEnabled { enabled.insert(.password) }
    if isSubmitEnabled { enabled.insert(.button) }
    return enabled
  }
}
