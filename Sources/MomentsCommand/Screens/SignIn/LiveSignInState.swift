internal import SignIn
internal import TerminalUI

/// The part of the live sign-in screen's state that isn't in its view models, such as the focus and the activity.
///
/// A pure state machine: its inputs are keys, forms and sign-in states, and its outputs are requests and the contents
/// of the screen.
struct LiveSignInState {
  /// An action that a key requests from the view models or the ``ScreenSession``.
  enum Request: Equatable {
    case setUsername(String)
    case setPassword(Password)
    case submit
    /// Keeps the changes that the next sign-out would discard.
    case keepChanges
    case quit
  }

  /// The values that the view models show.
  struct Form {
    var username = ""
    var password = Password()
    var isUsernameEnabled = false
    var isPasswordEnabled = false
    var isSubmitEnabled = false
    var submitTitle = "Submit"
    /// Whether pressing the button discards changes.
    var asksToDiscard = false
    var isBusy = false
    /// The message; empty while it is hidden.
    var message = ""
    var recentSignIns: [String] = []
  }

  /// The description of the latest activity.
  private(set) var activity: String
  private var wantedFocus = SignInScreen.Control.username
  /// Whether a submission is in flight: from the key Enter until ``submitEnded()``.
  private var isSubmitting = false
  private let signedInKeys: [KeyHint]

  /// - Parameters:
  ///   - hint: The text to show until the sign-in state changes for the first time.
  ///   - signedInKeys: The hints for keys that an enclosing screen handles while a user is signed in.
  init(hint: String, signedInKeys: [KeyHint] = []) {
    activity = hint
    self.signedInKeys = signedInKeys
  }

  // MARK: Events

  /// Records a change of the sign-in state.
  ///
  /// - Returns: Whether to load the recent sign-ins.
  mutating func signStateChanged(to state: SignState) -> Bool {
    activity = "state changed: \(state)"
    return if case .signed = state { true } else { false }
  }

  mutating func submitEnded() {
    isSubmitting = false
  }

  // MARK: Keys

  /// Handles a key: moves the focus, or returns the request of the key; `nil` if there is no request.
  mutating func press(_ key: Key, in form: Form) -> Request? {
    switch key {
    case .escape: return form.asksToDiscard ? .keepChanges : .quit
    // The view model reads the form in a later job. Until the submission ends, all keys but Escape are ignored, so that
    // the form is sent as it was when Enter was pressed.
    case _ where isSubmitting: return nil
    case .tab, .down: moveFocus(by: 1, in: form)
    case .backTab, .up: moveFocus(by: -1, in: form)
    case .enter where focus(in: form) == .username: moveFocus(by: 1, in: form)
    case .enter where form.isSubmitEnabled:
      isSubmitting = true
      return .submit
    default: return editRequest(of: key, in: form)
    }
    return nil
  }

  private func editRequest(of key: Key, in form: Form) -> Request? {
    switch focus(in: form) {
    case .username: TextField.text(form.username, after: key).map { .setUsername($0) }
    case .password: TextField.text(form.password.text, after: key).map { .setPassword(Password($0)) }
    case .button, nil: nil
    }
  }

  /// Returns the control that the user chose, or the first enabled control while the chosen one is disabled.
  private func focus(in form: Form) -> SignInScreen.Control? {
    let controls = form.enabledControls
    return controls.contains(wantedFocus) ? wantedFocus : SignInScreen.Control.allCases.first(where: controls.contains)
  }

  private mutating func moveFocus(by step: Int, in form: Form) {
    let controls = SignInScreen.Control.allCases.filter(form.enabledControls.contains)
    guard let focus = focus(in: form), let index = controls.firstIndex(of: focus) else { return }
    wantedFocus = controls[(index + step + controls.count) % controls.count]
  }

  // MARK: Contents

  func model(of form: Form) -> SignInScreen.Model {
    SignInScreen.Model(
      isSignedIn: form.isSignedIn, isBusy: form.isBusy, username: form.username,
      passwordLength: form.password.text.count, buttonTitle: form.submitTitle, enabled: form.enabledControls,
      focus: focus(in: form), message: form.message, recentSignIns: form.isSignedIn ? form.recentSignIns : [],
      activity: activity, keys: keys(in: form))
  }

  private func keys(in form: Form) -> [KeyHint] {
    var keys = [KeyHint(key: "esc", action: form.asksToDiscard ? "stay signed in" : "quit")]
    if form.enabledControls.count > 1 { keys.append(KeyHint(key: "tab", action: "next")) }
    let focus = focus(in: form)
    switch focus {
    case .username, .password:
      if form.isSubmitEnabled, focus == .password { keys.append(KeyHint(key: "enter", action: form.submitTitle)) }
      keys.append(KeyHint(key: "^U", action: "clear the field"))
    case .button: keys.append(KeyHint(key: "enter", action: form.submitTitle))
    case nil: break
    }
    if form.isSignedIn { keys += signedInKeys }
    return keys
  }
}

extension LiveSignInState.Form {
  /// Whether a user is signed in, and is not signing out.
  fileprivate var isSignedIn: Bool { !isUsernameEnabled && !isBusy }

  fileprivate var enabledControls: Set<SignInScreen.Control> {
    var controls: Set<SignInScreen.Control> = []
    if isUsernameEnabled { controls.insert(.username) }
    if isPasswordEnabled { controls.insert(.password) }
    if isSubmitEnabled { controls.insert(.button) }
    return controls
  }
}
