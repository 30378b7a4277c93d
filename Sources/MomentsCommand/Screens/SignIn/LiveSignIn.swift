internal import Foundation
internal import Multicast
internal import Observation
internal import SignIn
internal import TerminalUI

/// The live sign-in screen, which connects the view models of the sign-in feature with a terminal.
@MainActor
@Observable
final class LiveSignIn: LiveScreen {
  private let service: any UserServiceType
  private let model: SignInViewModel
  private var state: LiveSignInState

  /// Creates the live screen.
  ///
  /// - Parameters:
  ///   - service: The service that signs users in and out.
  ///   - hint: The text that the screen shows until there is an activity.
  ///   - signedInKeys: The hints for keys that an enclosing screen handles while a user is signed in.
  init(service: any UserServiceType, hint: String, signedInKeys: [KeyHint] = []) {
    self.service = service
    model = SignInViewModel(userService: service)
    state = LiveSignInState(hint: hint, signedInKeys: signedInKeys)
  }

  /// Observes the sign-in state, shows its changes, and loads the recent sign-ins after each change to `signed`.
  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.model.run() }
      // The first element is the current state and not a change.
      for await signState in service.signStates.dropFirst() where state.signStateChanged(to: signState) {
        // In its own task, so that the loop receives a sign-out even if the server hasn't answered yet.
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

  /// The recent sign-ins, or the reason why they could not be loaded.
  ///
  /// `SignInError.refused` isn't shown, because it means that the user has signed out meanwhile.
  private var recentSignIns: [String] {
    let list = model.recentSignIns
    return if case .session(let error) = list.error { [error.description] } else { list.dates.map(\.description) }
  }
}
