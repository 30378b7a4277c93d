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
/// ``report()``.
final class SimulatedMonitor: FolderMonitor, Sendable {
  /// The state of the monitor.
  struct State {
    /// The descriptors of the folders that exist.
    var folders: [String: WatchDescriptor] = [:]
    var isStarted = false
    var startCount = 0
    var watched: [WatchDescriptor: Set<FolderInterest>] = [:]
    var events: [FolderHubState.Event] = []
    /// The error codes with which the next reads fail, regardless of their file system.
    var readFailures: [CInt] = []
    var onEvents: @Sendable () -> Void = {}
  }

  private let state: Lock<State>

  init(folders: [String: CInt]) {
    state = Lock(State(folders: folders.mapValues { WatchDescriptor(number: $0) }))
  }

  func withState<Result>(_ body: (inout State) -> Result) -> Result {
    state.withLock(body)
  }

  /// The numbers of the watched folders, in ascending order.
  var watchedNumbers: [CInt] { withState { $0.watched.keys.map(\.number).sorted() } }

  func queue(_ event: FolderEvent, of number: CInt?) {
    withState {
      $0.events.append(
        FolderHubState.Event(descriptor: number.map { WatchDescriptor(number: $0) }, folderEvent: event))
    }
  }

  /// Notifies the hub of events, as the operating system does.
  func report() {
    withState { $0.onEvents }()
  }

  func start(for folder: String, fileSystem: FileSystem, onEvents: @escaping @Sendable () -> Void) {
    withState { state in
      if !state.isStarted { (state.startCount, state.onEvents) = (state.startCount + 1, onEvents) }
      state.isStarted = true
    }
  }

  func stop() {
    withState { ($0.isStarted, $0.watched, $0.events) = (false, [:], []) }
  }

  func watch(
    _ path: String, for interest: FolderInterest, fileSystem: FileSystem
  ) throws(SystemError) -> WatchDescriptor {
    // The paths of parent folders end with a slash.
    let name = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    let descriptor = withState { $0.folders[name] }
    try fileSystem.perform("watch", path) {
      errno = ENOENT
      return descriptor == nil ? -1 : 0
    }
    guard let descriptor else { preconditionFailure("The call above throws if the folder doesn't exist.") }
    withState { _ = $0.watched[descriptor, default: []].insert(interest) }
    return descriptor
  }

  func unwatch(_ descriptor: WatchDescriptor) {
    withState { _ = $0.watched.removeValue(forKey: descriptor) }
  }

  func takeEvents(for folder: String, fileSystem: FileSystem) throws(SystemError) -> [FolderHubState.Event] {
    let (events, failure) = withState { state -> ([FolderHubState.Event], CInt?) in
      if !state.readFailures.isEmpty { return ([], state.readFailures.removeFirst()) }
      defer { state.events = [] }
      return (state.events, nil)
    }
    if let failure { throw SystemError(code: failure, operation: "read", path: folder) }
    return events
  }
}
