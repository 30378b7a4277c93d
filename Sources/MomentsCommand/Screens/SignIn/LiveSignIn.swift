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
  private let viewModel: SignInViewModel
  private var state: LiveSignInState

  /// Creates the live screen.
  ///
  /// - Parameters:
  ///   - service: The service that signs users in and out.
  ///   - hint: The text that the screen shows until the sign-in state changes for the first time.
  ///   - signedInKeys: The hints for keys that an enclosing screen handles while a user is signed in.
  init(service: any UserServiceType, hint: String, signedInKeys: [KeyHint] = []) {
    self.service = service
    viewModel = SignInViewModel(userService: service)
    state = LiveSignInState(hint: hint, signedInKeys: signedInKeys)
  }

  /// Observes the sign-in state, shows its changes, and loads the recent sign-ins after each change to `signed`.
  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.viewModel.run() }
      // The first element is the current state and not a change.
      for await signState in service.signStates.dropFirst() {
        let loadsRecentSignIns = state.signStateChanged(to: signState)
        guard loadsRecentSignIns else { continue }
        // In its own task, so that the loop receives a sign-out even if the server hasn't answered yet.
        group.addTask { await self.viewModel.recentSignIns.reload() }
      }
    }
  }

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    switch state.press(key, in: form) {
    case .setUsername(let username): viewModel.username = username
    case .setPassword(let password): viewModel.password = password
    case .submit:
      return .perform {
        await self.viewModel.submit()
        self.state.submitEnded()
      }
    case .keepChanges: viewModel.keepChanges()
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
      username: viewModel.username, password: viewModel.password, isUsernameEnabled: viewModel.isUsernameEnabled,
      isPasswordEnabled: viewModel.isPasswordEnabled, isSubmitEnabled: viewModel.isSubmitEnabled,
      submitTitle: viewModel.submitTitle, asksToDiscard: viewModel.asksToDiscard, isBusy: viewModel.showsIndicator,
      message: viewModel.isTextHidden ? "" : viewModel.message,
      recentSignIns: recentSignIns)
  }

  /// The recent sign-ins, or the reason why they could not be loaded.
  ///
  /// `SignInError.refused` isn't shown, because it means that a sign-out has begun meanwhile.
  private var recentSignIns: [String] {
    let list = viewModel.recentSignIns
    return if case .session(let error) = list.error { [error.description] } else { list.dates.map(\.description) }
  }
}
