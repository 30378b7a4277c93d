internal import Multicast
internal import Observation
internal import SignIn
internal import TerminalUI

/// The sign-in screen, and the timeline of the signed-in user.
///
/// A timeline is closed as soon as its user is no longer signed in.
@MainActor
@Observable
final class LiveAccount: LiveScreen {
  private static let timelineKey = Key.character("t")

  private let service: any UserServiceType
  private let signIn: LiveSignIn
  private let makeTimeline: @MainActor (_ userID: String) -> LiveTimeline
  /// The shown timeline; `nil` while the sign-in screen is shown.
  private var timeline: LiveTimeline? {
    didSet { shownTimelines.send(timeline) }
  }
  private let shownTimelines = CurrentValueRelay<LiveTimeline?>(nil)

  /// Creates the live screen, which shows the sign-in screen first.
  ///
  /// - Parameters:
  ///   - service: The service that signs users in and out.
  ///   - hint: The text that the sign-in screen shows until the sign-in state changes for the first time.
  ///   - makeTimeline: Creates the timeline of a user.
  init(
    service: any UserServiceType, hint: String, makeTimeline: @escaping @MainActor (_ userID: String) -> LiveTimeline
  ) {
    self.service = service
    self.makeTimeline = makeTimeline
    signIn = LiveSignIn(service: service, hint: hint, signedInKeys: [KeyHint(key: "t", action: "timeline")])
  }

  func frame(size: TerminalSize) -> Frame? {
    if let timeline { timeline.frame(size: size) } else { signIn.frame(size: size) }
  }

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    if let timeline {
      let response = timeline.press(key, size: size)
      guard case .quit = response else { return response }
      self.timeline = nil
      return nil
    }
    guard key == Self.timelineKey, case .signed(let user) = service.signState else {
      return signIn.press(key, size: size)
    }
    timeline = makeTimeline(user.uid)
    return nil
  }

  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.signIn.run() }
      group.addTask { await self.closeTimelineAtSignOut() }
      for await timeline in shownTimelines.stream {
        guard let timeline else { continue }
        group.addTask { await self.run(timeline) }
      }
    }
  }

  /// Runs a timeline until another screen is shown.
  private func run(_ timeline: LiveTimeline) async {
    await withTaskGroup { group in
      group.addTask { await timeline.run() }
      group.addTask { [shownTimelines] in
        for await shownTimeline in shownTimelines.stream where shownTimeline !== timeline { return }
      }
      await group.next()
      group.cancelAll()
    }
  }

  private func closeTimelineAtSignOut() async {
    for await state in service.signStates where state.user == nil { timeline = nil }
  }
}

extension SignState {
  fileprivate var user: User? {
    if case .signed(let user) = self { user } else { nil }
  }
}
