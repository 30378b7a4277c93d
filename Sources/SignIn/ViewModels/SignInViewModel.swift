internal import Multicast
public import Observation

/// The sign-in screen: two fields, one button, and a text.
///
/// Await ``run()`` from the view's task. Nothing keeps the model alive: if it is dropped while its loop runs, it is
/// released and the loop ends.
///
/// The password is shown by no text, dump or mirror of the model; see ``Password``.
@MainActor
@Observable
public final class SignInViewModel {
  private var form: SignInForm

  /// The list of recent sign-ins, which is a part of the screen with a model of its own.
  public let recentSignIns: RecentSignInsViewModel

  @ObservationIgnored private let userService: any UserServiceType
  @ObservationIgnored private var following: MulticastSubscription<SignState, Never>?

  /// Creates the model of a sign-in screen.
  ///
  /// - Parameter userService: The service that knows which user is signed in. Share one among all screens.
  public init(userService: any UserServiceType) {
    self.userService = userService
    form = SignInForm(state: userService.signState)
    recentSignIns = RecentSignInsViewModel(userService: userService)
  }

  deinit {
    following?.cancel()
  }

  // MARK: Inputs

  /// What is typed as the username.
  public var username: String {
    get { form.username }
    set { form.username = newValue }
  }

  /// What is typed as the password; empty again after a sign-out.
  public var password: Password {
    get { form.password }
    set { form.password = newValue }
  }

  /// Signs in, or out if a user is signed in.
  ///
  /// A sign-out that would lose changes is refused, and ``asksToDiscard`` is set. The next one discards them, unless
  /// ``keepChanges()`` comes before.
  ///
  /// Does nothing while ``isSubmitEnabled`` is false, so also while a sign-in or a sign-out is in flight. Sets
  /// ``message`` on failure. Cancellation isn't a failure, and neither is a call that comes second.
  public func submit() async {
    guard isSubmitEnabled else { return }
    let pressed = form
    form.report = nil
    let isSigningOut = if case .signed = pressed.state { true } else { false }
    do throws(SignInError) {
      if isSigningOut {
        try await userService.performSignout(discardingUnsent: pressed.asksToDiscard)
      } else {
        try await userService.performSignin(username: pressed.username, password: pressed.password)
      }
    } catch {
      switch error {
      case .refused, .cancelled: return
      case .session, .userData: form.report = isSigningOut ? .failedToSignOut(error) : .failedToSignIn(error)
      }
    }
  }

  /// Keeps the user signed in and the changes waiting, after a sign-out that would lose them.
  public func keepChanges() {
    if form.asksToDiscard { form.report = nil }
  }

  // MARK: Outputs

  /// Whether the username can be typed: while no user is signed in.
  public var isUsernameEnabled: Bool { form.isUsernameEnabled }

  /// Whether the password can be typed: while no user is signed in and the username has four characters or more.
  public var isPasswordEnabled: Bool { form.isPasswordEnabled }

  /// Whether the button can be pressed: to sign in with a username of four characters or more and a password, to sign
  /// out always, and not while busy.
  public var isSubmitEnabled: Bool { form.isSubmitEnabled }

  /// Whether a sign-out was refused because the server doesn't have some of the user's changes: ``submit()`` discards
  /// them now, and ``keepChanges()`` keeps them.
  public var asksToDiscard: Bool { form.asksToDiscard }

  /// The text of the button: "SignOut" while a user is signed in, "Discard and SignOut" while ``asksToDiscard`` is set,
  /// else "Submit".
  public var submitTitle: String { form.submitTitle }

  /// Whether the indicator shows: while a sign-in or a sign-out is in flight.
  public var showsIndicator: Bool { form.state.isBusy }

  /// Whether ``message`` is hidden: while the indicator shows.
  public var isTextHidden: Bool { form.state.isBusy }

  /// What is missing, what went wrong, or which user is signed in; empty if there is nothing to say.
  public var message: String { form.message }

  /// Shows the state of the service until the calling task is cancelled, the service ends or the model is released.
  ///
  /// Runs ``recentSignIns`` too.
  public consuming func run() async {
    let states = userService.signStates.subscribe()
    following?.cancel()
    following = states
    let child = recentSignIns
    let subscriber = WeakSubscriber(copy self)
    // Consumed, so that what waits from here on doesn't keep the model.
    _ = consume self
    async let _: Void = child.run()
    await subscriber.receive(states) { $0.form.follow($1) }
  }
}
