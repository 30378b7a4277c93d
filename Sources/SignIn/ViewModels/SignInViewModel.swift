internal import Multicast
public import Observation

/// The model of a sign-in screen with two text fields, a button and a message.
///
/// Await ``run()`` in the view's task. The call doesn't keep the model alive, and ends when the model is released.
///
/// No description, dump or mirror of the model reveals the password; see ``Password``.
@MainActor
@Observable
public final class SignInViewModel {
  private var form: SignInForm

  /// The model of the list of recent sign-ins, which is a part of the screen.
  public let recentSignIns: RecentSignInsViewModel

  @ObservationIgnored private let userService: any UserServiceType
  @ObservationIgnored private let currentSubscription = CurrentSubscription<SignState>()

  /// Creates the model of a sign-in screen.
  ///
  /// - Parameter userService: The service that signs users in and out. Share one among all screens.
  public init(userService: any UserServiceType) {
    self.userService = userService
    form = SignInForm(state: userService.signState)
    recentSignIns = RecentSignInsViewModel(userService: userService)
  }

  // MARK: Inputs

  /// The content of the username field.
  public var username: String {
    get { form.username }
    set { form.username = newValue }
  }

  /// The content of the password field; cleared after a sign-out.
  public var password: Password {
    get { form.password }
    set { form.password = newValue }
  }

  /// Signs in, or signs out if a user is signed in.
  ///
  /// A sign-out that would lose changes is refused, and sets ``asksToDiscard``. The next sign-out discards the changes,
  /// unless ``keepChanges()`` is called first.
  ///
  /// Does nothing while ``isSubmitEnabled`` is `false`, which includes the time while a sign-in or a sign-out is in
  /// flight. Sets ``message`` on failure. Cancellation isn't a failure, and neither is a call that the service refuses
  /// because another one came first.
  public func submit() async {
    guard isSubmitEnabled else { return }
    let submittedForm = form
    form.report = nil
    let isSigningOut = if case .signed = submittedForm.state { true } else { false }
    do throws(SignInError) {
      if isSigningOut {
        try await userService.performSignout(discardingUnsent: submittedForm.asksToDiscard)
      } else {
        try await userService.performSignin(username: submittedForm.username, password: submittedForm.password)
      }
    } catch {
      switch error {
      // `refused` means that another call came first. A sign-out that would lose changes throws `userData` instead.
      case .refused, .cancelled: return
      case .session, .userData: form.report = isSigningOut ? .failedToSignOut(error) : .failedToSignIn(error)
      }
    }
  }

  /// Keeps the user signed in and the changes queued, after a sign-out that would lose them was refused.
  public func keepChanges() {
    if form.asksToDiscard { form.report = nil }
  }

  // MARK: Outputs

  /// Whether the username field is enabled, which is the case while no user is signed in, signing in or signing out.
  public var isUsernameEnabled: Bool { form.isUsernameEnabled }

  /// Whether the password field is enabled.
  ///
  /// It is enabled if ``isUsernameEnabled`` is `true` and the username has at least four characters.
  public var isPasswordEnabled: Bool { form.isPasswordEnabled }

  /// Whether the button is enabled.
  ///
  /// To sign in, the username needs at least four characters and the password at least one. To sign out, no input is
  /// needed. The button is disabled while a sign-in or a sign-out is in flight.
  public var isSubmitEnabled: Bool { form.isSubmitEnabled }

  /// Whether a sign-out was refused because the server doesn't have some of the user's changes.
  ///
  /// ``submit()`` then discards them, and ``keepChanges()`` keeps them.
  public var asksToDiscard: Bool { form.asksToDiscard }

  /// The title of the button.
  ///
  /// "SignOut" while a user is signed in, "Discard and SignOut" while ``asksToDiscard`` is `true`, and "Submit"
  /// otherwise.
  public var submitTitle: String { form.submitTitle }

  /// Whether the activity indicator is visible, which is the case while a sign-in or a sign-out is in flight.
  public var showsIndicator: Bool { form.state.isBusy }

  /// Whether ``message`` is hidden, which is the case while the activity indicator is visible.
  public var isTextHidden: Bool { form.state.isBusy }

  /// A message about missing input, a failure, a sign-out or the signed-in user; empty if there is none.
  public var message: String { form.message }

  /// Observes the service until the calling task is cancelled, the service is released, or the model is released.
  ///
  /// Also runs ``recentSignIns``. Another call ends this one.
  public consuming func run() async {
    let states = currentSubscription.replace(with: userService.signStates.subscribe())
    let recentSignInsModel = recentSignIns
    let subscriber = WeakSubscriber(consume self)
    async let _: Void = recentSignInsModel.run()
    await subscriber.receive(states) { $0.form.update($1) }
  }
}
