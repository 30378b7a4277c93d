internal import Multicast

/// Whether the user sees the app.
public enum AppActivity: Hashable, Sendable {
  case active
  case inactive
}

/// Tells a repository when the app becomes active, to fetch what is observed; see
/// ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
public protocol ActivityMonitor: Sendable {
  /// The present activity, then every later one.
  ///
  /// Each repository iterates it once. Where it ends, the last one stays.
  var activities: any AsyncSequence<AppActivity, Never> & Sendable { get }
}

/// An activity monitor that an app or a test feeds by hand.
///
/// An app with SwiftUI sets it when its `scenePhase` changes:
///
/// ```swift
/// activity.activity = isActive ? .active : .inactive
/// ```
public final class ManualActivityMonitor: ActivityMonitor {
  private let relay: CurrentValueRelay<AppActivity>

  /// Creates a monitor.
  public init(_ activity: AppActivity = .active) {
    relay = CurrentValueRelay(activity, buffering: .unbounded)
  }

  /// The present activity.
  public var activity: AppActivity {
    get { relay.value }
    set { relay.send(newValue) }
  }

  /// The present activity, then every later one.
  public var activities: any AsyncSequence<AppActivity, Never> & Sendable { relay.stream }
}
