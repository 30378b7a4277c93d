/// Decides whether a repository runs or is suspended.
///
/// It is suspended while the app has asked for that, and while the app is in the background, but runs during a drain.
struct SuspensionState {
  private var isRequested = false
  private var isInBackground = false
  private var drains: Set<UInt64> = []
  private var lastDrain: UInt64 = 0

  var isSuspended: Bool { isRequested || isInBackground }

  /// Whether mutations are sent.
  var isRunning: Bool { !isSuspended || !drains.isEmpty }

  /// Records that the app asks for the suspension, which ends the present drains.
  mutating func suspend() {
    isRequested = true
    drains = []
  }

  mutating func resume() {
    isRequested = false
  }

  mutating func receive(_ activity: AppActivity) {
    isInBackground = activity == .background
  }

  /// Begins a drain, and returns its number.
  mutating func beginDrain() -> UInt64 {
    lastDrain += 1
    drains.insert(lastDrain)
    return lastDrain
  }

  mutating func endDrain(_ number: UInt64) {
    drains.remove(number)
  }

  func isDraining(_ number: UInt64) -> Bool { drains.contains(number) }
}
