internal import Multicast

/// What an app is doing, as the user sees it.
public enum AppActivity: Hashable, Sendable {
  /// The app is visible and in use.
  case active
  /// The app is visible but not in use, or about to be.
  case inactive
  /// The app isn't visible, and the system may suspend it at any time.
  ///
  /// Repositories are suspended; see ``SyncedRepository/suspend()``.
  case background
}

/// Reports what the app is doing.
///
/// A repository is suspended while the app is in the background. A loading policy fetches observed values only while
/// the app is active; see ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
public protocol ActivityMonitor: Sendable {
  /// The present activity, then every later one.
  ///
  /// Each repository iterates the sequence once. If it ends, the last activity remains in effect.
  var activities: any AsyncSequence<AppActivity, Never> & Sendable { get }
}

/// An activity monitor whose activity an app or a test sets.
///
/// A SwiftUI app sets the activity when its `scenePhase` changes:
///
/// ```swift
/// switch phase {
/// case .active: activity.activity = .active
/// case .background: activity.activity = .background
/// default: activity.activity = .inactive
/// }
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
