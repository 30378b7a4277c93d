internal import DataStore
internal import Moments
internal import Multicast
internal import MulticastTesting
internal import Repository
internal import SignIn

/// The steps of a scripted session on the sign-in screen.
@MainActor
struct SignInScript {
  let model: SignInViewModel
  let stateIterator: MulticastStream<SignState, Never>.AsyncIterator
  let demonstration: Demonstration
  let store: any PersistentDataStoreType
  let console: Console

  func begin() async {
    await printState()
    printScreen()
  }

  func type(username: String) {
    console.print("\nUsername: \(username)")
    model.username = username
    printScreen()
  }

  func type(password: String) {
    model.password = Password(password)
    console.print("\nPassword: \(model.password)")
    printScreen()
  }

  /// Presses the button, and presses it again before the server has answered.
  func submitTwice(toggling isServerAnswering: CurrentValueRelay<Bool>) async {
    let title = model.submitTitle
    console.print("\n\(title)")
    isServerAnswering.send(false)
    async let submit: Void = model.submit()
    await until { [model] in model.showsIndicator }
    await printState()
    console.print("Busy: the indicator is shown, and the message is hidden. A second \(title) is ignored.")
    await model.submit()
    isServerAnswering.send(true)
    await submit
    await until { [model] in !model.showsIndicator }
    await printState()
    printScreen()
  }

  /// Presses the button to sign out, and waits until the sign-out is refused because a like is pending.
  func submitRefusedSignOut() async {
    console.print("\n\(model.submitTitle)")
    await model.submit()
    await printState()
    await until { [model] in model.asksToDiscard }
    await printState()
    printScreen()
  }

  func showRecentSignIns() async {
    console.print("\nRecent sign-ins")
    await model.recentSignIns.reload()
    await until { [model] in !model.recentSignIns.dates.isEmpty }
    for date in model.recentSignIns.dates { console.print("\(date)") }
  }

  // MARK: Timeline

  /// Fetches the timeline of the signed-in user, and prints its summary and the number of stored timelines.
  func showTimeline(of userID: String) async throws(MomentsRepoError) {
    try await demonstration.repo.getMoments(userID: userID)
    for await timeline in demonstration.repo.momentsDetails(userID: userID) {
      console.print("")
      let moments = TimelineText.moments(timeline.moments.count)
      console.printable.print("Timeline of \(timeline.userDetails.name): \(moments)")
      break
    }
    let storedCount = try await Self.mappingStoreError { () async throws(StoreError) in
      try await store.observeMomentsDetails().stored.count
    }
    console.print("Timelines stored on this device: \(storedCount)")
  }

  /// Switches the network off, and likes the first moment that the user hasn't liked yet.
  ///
  /// If the user already likes all moments, the first one is unliked instead.
  func likeWithoutNetwork(by userID: String) async throws(MomentsRepoError) {
    try await Self.mappingStoreError { () async throws(StoreError) in try await demonstration.network.setOnline(false) }
    console.print("\nThe network is down.")
    for await timeline in demonstration.repo.momentsDetails(userID: userID) {
      let unliked = timeline.moments.first { $0.isLiked == false }
      guard let moment = unliked ?? timeline.moments.first else { return }
      let isLiked = moment.isLiked != true
      let outcome = try await demonstration.repo.updateLike(
        isLiked: isLiked, momentID: moment.id, fromUserID: userID)
      console.printable.print("\(isLiked ? "Like" : "Unlike") \(TimelineText.heading(of: moment)): \(outcome)")
      return
    }
  }

  func reconnect() async throws(MomentsRepoError) {
    try await Self.mappingStoreError { () async throws(StoreError) in try await demonstration.network.setOnline(true) }
    console.print("\nThe network is back.")
  }

  /// Runs a closure, and throws its `StoreError` as a `MomentsRepoError`.
  ///
  /// Switching the network can throw a `StoreError` too, because the network's state is stored.
  private static func mappingStoreError<Result>(
    _ body: () async throws(StoreError) -> Result
  ) async throws(MomentsRepoError) -> Result {
    do throws(StoreError) {
      return try await body()
    } catch {
      throw .store(error)
    }
  }

  // MARK: Printing

  private func printState() async {
    // The copy shares the subscription of the original.
    var stateIterator = stateIterator
    if let state = await stateIterator.next() { console.print("state changed: \(state)") }
  }

  private func printScreen() {
    let controls = [
      ("username", model.isUsernameEnabled), ("password", model.isPasswordEnabled),
      (model.submitTitle, model.isSubmitEnabled),
    ]
    console.print(controls.map { "\($0): \($1 ? "enabled" : "disabled")" }.joined(separator: ", "))
    if !model.message.isEmpty { console.print(model.message) }
  }
}
