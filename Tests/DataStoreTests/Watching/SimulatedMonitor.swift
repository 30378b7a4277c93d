import Dispatch
import Multicast

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Simulates, in memory, an operating system that watches folders.
///
/// A test queues events. The hub takes them when a watch begins or takes its changes, or when the test calls
/// ``notifyHub()``.
final class SimulatedMonitor: FolderMonitor, Sendable {
  let closings = DispatchGroup()

  /// The state of the monitor.
  struct State {
    /// The descriptors of the folders that exist.
    var folders: [String: WatchDescriptor] = [:]
    var isStarted = false
    var startCount = 0
    /// What each watched folder is watched for.
    var interests: [WatchDescriptor: Set<FolderInterest>] = [:]
    var events: [FolderHubState.Event] = []
    /// The error codes with which the next calls of ``takeEvents(for:fileSystem:)`` fail, whichever ``FileSystem`` they
    /// are passed.
    var readErrorCodes: [CInt] = []
    var onEvents: @Sendable () -> Void = {}
  }

  private let state: Lock<State>

  init(folderNumbers: [String: CInt]) {
    state = Lock(State(folders: folderNumbers.mapValues { WatchDescriptor(number: $0) }))
  }

  func withState<Result>(_ body: (inout State) -> Result) -> Result {
    state.withLock(body)
  }

  /// The numbers of the watched folders, in ascending order.
  var watchedFolderNumbers: [CInt] { withState { $0.interests.keys.map(\.number).sorted() } }

  /// Queues an event of the folder with the given number, or of all folders if the number is `nil`.
  func queue(_ event: FolderEvent, ofFolder number: CInt?) {
    withState {
      $0.events.append(
        FolderHubState.Event(descriptor: number.map { WatchDescriptor(number: $0) }, folderEvent: event))
    }
  }

  /// Notifies the hub of events, as the operating system does.
  func notifyHub() {
    withState { $0.onEvents }()
  }

  func start(for folder: String, fileSystem: FileSystem, onEvents: @escaping @Sendable () -> Void) {
    withState { state in
      if !state.isStarted { (state.startCount, state.onEvents) = (state.startCount + 1, onEvents) }
      state.isStarted = true
    }
  }

  func stop() {
    withState { ($0.isStarted, $0.interests, $0.events) = (false, [:], []) }
  }

  func watch(
    _ path: String, for interest: FolderInterest, fileSystem: FileSystem
  ) throws(SystemError) -> WatchDescriptor {
    // The paths of parent folders end with a slash.
    let folder = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    let descriptor = withState { $0.folders[folder] }
    try fileSystem.perform("watch", path) {
      errno = ENOENT
      return descriptor == nil ? -1 : 0
    }
    guard let descriptor else { preconditionFailure("The call above throws if the folder doesn't exist.") }
    withState { _ = $0.interests[descriptor, default: []].insert(interest) }
    return descriptor
  }

  func unwatch(_ descriptor: WatchDescriptor) {
    withState { _ = $0.interests.removeValue(forKey: descriptor) }
  }

  func takeEvents(for folder: String, fileSystem: FileSystem) throws(SystemError) -> [FolderHubState.Event] {
    let (events, errorCode) = withState { state -> ([FolderHubState.Event], CInt?) in
      if !state.readErrorCodes.isEmpty { return ([], state.readErrorCodes.removeFirst()) }
      defer { state.events = [] }
      return (state.events, nil)
    }
    if let errorCode { throw SystemError(code: errorCode, operation: "read", path: folder) }
    return events
  }
}
