internal import Multicast

/// A group of tasks, which are cancelled by ``cancelAll()``, or at the latest when the group is released.
final class OwnedTasks: Sendable {
  private struct State {
    var tasks: [UInt64: Task<Void, Never>] = [:]
    /// The ids of the tasks that finished before ``start(_:)`` registered them in `tasks`.
    ///
    /// Empty after ``cancelAll()``, because from then on no task is registered.
    var finished: Set<UInt64> = []
    var lastID: UInt64 = 0
    var isCancelled = false
  }

  private let state = Lock(State())
  /// The executor of the tasks, or `nil` for the global concurrent executor.
  let executor: (any TaskExecutor)?

  /// - Parameter executor: The executor of the tasks, or `nil` for the global concurrent executor.
  init(executor: (any TaskExecutor)?) {
    self.executor = executor
  }

  deinit {
    cancelAll()
  }

  /// Starts a task.
  ///
  /// - Returns: A function that cancels the task.
  @discardableResult
  func start(_ work: @escaping @Sendable () async -> Void) -> @Sendable () -> Void {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    let task = Task(executorPreference: executor) { [weak self] in
      await work()
      self?.recordFinish(of: id)
    }
    let isCancelled = state.withLock { state in
      if state.finished.remove(id) == nil, !state.isCancelled { state.tasks[id] = task }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    return { task.cancel() }
  }

  /// The number of tasks that are remembered: the registered ones, and those that finished before they were registered.
  var count: Int { state.withLock { $0.tasks.count + $0.finished.count } }

  /// Whether ``cancelAll()`` was called.
  var areCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Cancels all tasks in the order in which they were started, and from now on each new task at once.
  func cancelAll() {
    let tasks = state.withLock { state in
      defer { (state.tasks, state.finished) = ([:], []) }
      state.isCancelled = true
      return state.tasks.sorted { $0.key < $1.key }
    }
    for (_, task) in tasks { task.cancel() }
  }

  private func recordFinish(of id: UInt64) {
    state.withLock { state in
      if state.tasks.removeValue(forKey: id) == nil, !state.isCancelled { state.finished.insert(id) }
    }
  }
}
