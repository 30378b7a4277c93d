/// Runs pieces of asynchronous work one after another, in the order they were added.
///
/// Work that was added runs to its end whoever is cancelled.
package struct TaskChain {
  private var last: (@Sendable () async -> Void)?

  package init() {}

  /// Adds work behind all that was added before.
  package mutating func add<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Task<Value, Never> {
    let previous = last
    let task = Task {
      await previous?()
      return await work()
    }
    last = { _ = await task.value }
    return task
  }
}
