internal import Multicast

/// The tasks of an object, which end with it.
final class OwnedTasks: Sendable {
  private struct State {
    var tasks: [UInt64: Task<Void, Never>] = [:]
    /// Tasks that were finished before they were registered.
    var finished: Set<UInt64> = []
    var lastNumber: UInt64 = 0
    var isCancelled = false
  }

  private let state = Lock(State())
  /// Where the tasks run; `nil` for the threads that all tasks share.
  let executor: (any TaskExecutor)?

  /// - Parameter executor: Where the tasks run; `nil` for the threads that all tasks share.
  init(executor: (any TaskExecutor)?) {
    self.executor = executor
  }

  deinit {
    cancelAll()
  }

  /// Starts a task.
  ///
  /// - Returns: A function that cancels it.
  @discardableResult
  func start(_ work: @escaping @Sendable () async -> Void) -> @Sendable () -> Void {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    let task = Task(executorPreference: executor) { [weak self] in
      await work()
      self?.finish(number)
    }
    let isCancelled = state.withLock { state in
      if state.finished.remove(number) == nil, !state.isCancelled { state.tasks[number] = task }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    return { task.cancel() }
  }

  /// Whether the owner has ended its tasks.
  var areCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Cancels all tasks in the order in which they were started, and those that are started from now on.
  func cancelAll() {
    let tasks = state.withLock { state in
      defer { state.tasks = [:] }
      state.isCancelled = true
      return state.tasks.sorted { $0.key < $1.key }
    }
    for (_, task) in tasks { task.cancel() }
  }

  private func finish(_ number: UInt64) {
    state.withLock { state in
      if state.tasks.removeValue(forKey: number) == nil { state.finished.insert(number) }
    }
  }
}
