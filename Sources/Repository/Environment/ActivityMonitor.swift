internal import Multicast

/// Whether the app is active, that is, visible to the user.
public enum AppActivity: Hashable, Sendable {
  case active
  case inactive
}

/// Reports when the app becomes active or inactive.
///
/// A loading policy fetches observed values only while the app is active; see
/// ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
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
