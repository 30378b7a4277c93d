internal import Foundation
internal import Multicast
internal import Observation
internal import SignIn
internal import TerminalUI

/// The sign-in screen on a terminal: the view models of the screen and of its list, and the keys.
@MainActor
@Observable
final class LiveSignIn: LiveScreen {
  private let service: any UserServiceType
  private let model: SignInViewModel
  private var wantedFocus = SignInScreen.Control.username
  private var activity: String
  /// Whether the button was pressed and has not been answered.
  private var isSubmitting = false

  /// Creates the live screen.
  ///
  /// - Parameters:
  ///   - service: Who knows who is signed in.
  ///   - hint: What is said at first.
  init(service: any UserServiceType, hint: String) {
    self.service = service
    model = SignInViewModel(userService: service)
    activity = hint
  }

  /// Follows the state, says each change of it, and loads the recent sign-ins of who is signed in.
  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.model.run() }
      // The first one is no change.
      for await state in service.signStates.dropFirst() {
        activity = "state changed: \(state)"
        // Beside it, as the user may sign out before the server has answered.
        if case .signed = state { group.addTask { await self.model.recentSignIns.reload() } }
      }
    }
  }

  // MARK: Keys

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    switch key {
    case .escape: return .quit
    // What was filled in is what is sent, also where the keys behind Enter come with it.
    case _ where isSubmitting: break
    case .tab, .down: moveFocus(by: 1)
    case .backTab, .up: moveFocus(by: -1)
    case .enter where focus == .username: moveFocus(by: 1)
    case .enter where model.isSubmitEnabled: return submit()
    default: edit(with: key)
    }
    return nil
  }

  private func submit() -> KeyResponse {
    isSubmitting = true
    return .perform {
      await self.model.submit()
      self.isSubmitting = false
    }
  }

  private func edit(with key: Key) {
    switch focus {
    case .username:
      if let text = TextField.text(model.username, after: key) { model.username = text }
    case .password:
      if let text = TextField.text(model.password.text, after: key) { model.password = Password(text) }
    case .button, nil: break
    }
  }

  private var enabled: Set<SignInScreen.Control> {
    var enabled: Set<SignInScreen.Control> = []
    if model.isUsernameEnabled { enabled.insert(.username) }
    if model.isPasswordEnabled { enabled.insert(.password) }
    if model.isSubmitEnabled { enabled.insert(.button) }
    return enabled
  }

  /// Where the user put it, or where it can be meanwhile.
  private var focus: SignInScreen.Control? {
    let enabled = enabled
    return enabled.contains(wantedFocus) ? wantedFocus : SignInScreen.Control.allCases.first(where: enabled.contains)
  }

  private func moveFocus(by step: Int) {
    let controls = SignInScreen.Control.allCases.filter(enabled.contains)
    guard let focus, let index = controls.firstIndex(of: focus) else { return }
    wantedFocus = controls[(index + step + controls.count) % controls.count]
  }

  // MARK: Picture

  func frame(size: TerminalSize) -> Frame? {
    // Neither signed out nor on the way.
    let isSignedIn = !model.isUsernameEnabled && !model.showsIndicator
    return SignInScreen.frame(
      of: SignInScreen.Model(
        isSignedIn: isSignedIn, isBusy: model.showsIndicator, username: model.username,
        passwordLength: model.password.text.count, buttonTitle: model.submitTitle, enabled: enabled, focus: focus,
        message: model.isTextHidden ? "" : model.message, recentSignIns: isSignedIn ? recentSignIns : [],
        activity: activity, keys: keys),
      size: size)
  }

  /// The list, or why there is no list; an answer that came after its user had signed out is no reason.
  private var recentSignIns: [String] {
    let list = model.recentSignIns
    return if case .session(let error) = list.error { [error.description] } else { list.dates.map(\.description) }
  }

  private var keys: [KeyHint] {
    var keys = [KeyHint(key: "esc", action: "quit")]
    if enabled.count > 1 { keys.append(KeyHint(key: "tab", action: "next")) }
    switch focus {
    case .username, .password:
      if model.isSubmitEnabled, focus == .password { keys.append(KeyHint(key: "enter", action: model.submitTitle)) }
      keys.append(KeyHint(key: "^U", action: "empty the field"))
    case .button: keys.append(KeyHint(key: "enter", action: model.submitTitle))
    case nil: break
    }
    return keys
  }
}
