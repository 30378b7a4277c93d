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
  private var state: LiveSignInState

  /// Creates the live screen.
  ///
  /// - Parameters:
  ///   - service: Who knows who is signed in.
  ///   - hint: What is said at first.
  ///   - signedInKeys: The keys that do something outside this screen while a user is signed in.
  init(service: any UserServiceType, hint: String, signedInKeys: [KeyHint] = []) {
    self.service = service
    model = SignInViewModel(userService: service)
    state = LiveSignInState(hint: hint, signedInKeys: signedInKeys)
  }

  /// Follows the state, says each change of it, and loads the recent sign-ins of who is signed in.
  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.model.run() }
      // The first one is no change.
      for await signState in service.signStates.dropFirst() where state.follow(signState) {
        // Beside it, as the user may sign out before the server has answered.
        group.addTask { await self.model.recentSignIns.reload() }
      }
    }
  }

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    switch state.press(key, in: form) {
    case .setUsername(let username): model.username = username
    case .setPassword(let password): model.password = password
    case .submit:
      return .perform {
        await self.model.submit()
        self.state.submitEnded()
      }
    case .keepChanges: model.keepChanges()
    case .quit: return .quit
    case nil: break
    }
    return nil
  }

  func frame(size: TerminalSize) -> Frame? {
    SignInScreen.frame(of: state.model(of: form), size: size)
  }

  private var form: LiveSignInState.Form {
    LiveSignInState.Form(
      username: model.username, password: model.password, isUsernameEnabled: model.isUsernameEnabled,
      isPasswordEnabled: model.isPasswordEnabled, isSubmitEnabled: model.isSubmitEnabled,
      submitTitle: model.submitTitle, asksToDiscard: model.asksToDiscard, isBusy: model.showsIndicator,
      message: model.isTextHidden ? "" : model.message,
      recentSignIns: recentSignIns)
  }

  /// The list, or why there is no list; an answer that came after its user had signed out is no reason.
  private var recentSignIns: [String] {
    let list = model.recentSignIns
    return if case .session(let error) = list.error { [error.description] } else { list.dates.map(\.description) }
  }
}
