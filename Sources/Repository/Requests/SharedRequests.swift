internal import Multicast

/// Shares one request among all callers that ask for the same key at the same time.
///
/// A caller that asks for a key while a request for it is in flight joins that request. Each caller that isn't
/// cancelled gets the request's value or its failure.
///
/// - **Cancellation**: A call whose task is cancelled throws ``SharedRequestError/cancelled`` at once, and the request
///   continues for the remaining callers. When the last caller has left, the request's task is cancelled. A later
///   caller starts a new request, even if the cancelled request hasn't ended.
/// - **Caching**: A completed request is forgotten, together with its value.
/// - **Priority**: The request runs with the priority of the caller that started it. When a caller of higher priority
///   joins, the request gets the higher priority, if the system can raise the priority of a task.
/// - Complexity: O(1) for each caller.
public final class SharedRequests<Key: Hashable & Sendable, Value: Sendable, Failure: Error>: Sendable {
  private typealias OutcomeChannel = MulticastChannel<Result<Value, Failure>, Never>

  /// A request and its outcome, which its callers share.
  ///
  /// The caller that starts the request stores the task in the relay before waiting.
  private struct Request: Sendable {
    let outcomeChannel = OutcomeChannel(replay: 1, buffering: .unbounded)
    let taskRelay = CurrentValueRelay<Task<Void, Never>?>(nil)
  }

  private let state = Lock(SharedRequestsState<Key, Request>())
  private let events: RepositoryEvents
  private let executor: (any TaskExecutor)?

  /// Creates an instance without requests.
  ///
  /// - Parameter events: Receives the events of requests.
  public convenience init(events: RepositoryEvents = RepositoryEvents()) {
    self.init(events: events, executor: nil)
  }

  /// - Parameters:
  ///   - events: Receives the events of requests.
  ///   - executor: The executor of the requests, or `nil` for the global concurrent executor.
  init(events: RepositoryEvents, executor: (any TaskExecutor)?) {
    (self.events, self.executor) = (events, executor)
  }

  /// Returns the value of a key, from the request in flight or from a new one.
  ///
  /// - Parameters:
  ///   - key: The key of the request. Requests with equal keys must be interchangeable.
  ///   - request: The request. It runs once for all callers of the key, in a task of its own. That task is cancelled
  ///     when all callers have been cancelled.
  /// - Throws: ``SharedRequestError/failed(_:)`` if the request failed, or ``SharedRequestError/cancelled`` if the
  ///   calling task was cancelled.
  public func value(
    for key: Key, request: @escaping @Sendable () async throws(Failure) -> Value
  ) async throws(SharedRequestError<Failure>) -> Value {
    try await value(for: key) { (_) async throws(Failure) in try await request() }
  }

  /// Variant of ``value(for:request:)`` for a request that checks whether it is still wanted.
  ///
  /// `isWanted` returns `false` from the moment at which the last caller leaves or ``end(with:where:)`` ends the
  /// request. `Task.isCancelled` becomes `true` shortly afterwards, when another request for the key may already have
  /// begun and ended.
  func value(
    for key: Key,
    request work: @escaping @Sendable (_ isWanted: @escaping @Sendable () -> Bool) async throws(Failure) -> Value
  ) async throws(SharedRequestError<Failure>) -> Value {
    if Task.isCancelled { throw .cancelled }
    let priority = Task.currentPriority
    let place = state.withLock { $0.join(key, priority: priority) { Request() } }
    if place.isFirst {
      events.emit(.requestStarted(key: "\(key)"))
      let task = Task(executorPreference: executor) {
        await self.perform(work, of: place.request, key: key, number: place.number)
      }
      // The task is set before this caller can leave, so that the last caller to leave finds it.
      place.request.taskRelay.send(task)
      if let highest = state.withLock({ $0.priority(key, number: place.number) }) {
        // A caller of higher priority that joined before the task was set found no task whose priority it could raise.
        if highest > priority { raisePriority(of: place.request, to: highest) }
      } else {
        // If ``end(with:where:)`` ended the request, it may have found no task to cancel, because the task wasn't set
        // yet. If the request has completed, cancelling its task has no effect.
        task.cancel()
      }
    } else {
      events.emit(.requestJoined(key: "\(key)", callers: place.callers))
      raisePriority(of: place.request, to: priority)
    }

    var outcome: Result<Value, Failure>?
    for await result in place.request.outcomeChannel.stream {
      outcome = result
      break
    }
    if case .cancel = state.withLock({ $0.leave(key, number: place.number) }) {
      place.request.taskRelay.value?.cancel()
      events.emit(.requestCancelled(key: "\(key)"))
    }
    switch outcome {
    case .success(let value): return value
    case .failure(let failure): throw .failed(failure)
    case nil: throw .cancelled
    }
  }

  /// Whether a call for a key would join a request.
  func isRequested(_ key: Key) -> Bool { state.withLock { $0.isRequested(key) } }

  /// Cancels the requests for the selected keys, so that the callers of these requests throw a failure.
  ///
  /// Emits no event.
  func end(with failure: Failure, where shouldEnd: (Key) -> Bool) {
    for request in state.withLock({ $0.remove(where: shouldEnd) }) {
      request.taskRelay.value?.cancel()
      request.outcomeChannel.send(.failure(failure))
      request.outcomeChannel.finish()
    }
  }

  private func perform(
    _ work: @Sendable (_ isWanted: @escaping @Sendable () -> Bool) async throws(Failure) -> Value, of request: Request,
    key: Key, number: UInt64
  ) async {
    let outcome: Result<Value, Failure>
    do throws(Failure) {
      outcome = .success(try await work { self.state.withLock { $0.isWanted(key, number: number) } })
    } catch {
      outcome = .failure(error)
    }
    // The request is forgotten before the outcome is sent, so that a later caller starts another request. Earlier
    // callers receive the outcome from the request's channel, which replays it.
    let isAwaited = state.withLock { $0.finish(key, number: number) }
    guard isAwaited else { return }
    switch outcome {
    case .success: events.emit(.requestFinished(key: "\(key)"))
    case .failure(let error): events.emit(.requestFailed(key: "\(key)", reason: String(describing: error)))
    }
    request.outcomeChannel.send(outcome)
    request.outcomeChannel.finish()
  }

  private func raisePriority(of request: Request, to priority: TaskPriority) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      request.taskRelay.value?.escalatePriority(to: priority)
    }
  }
}
