internal import Multicast

/// One request for all who want the same at the same time.
///
/// Who asks for a key while a request for it is under way waits for that one; all get its value, or its failure.
///
/// - **Cancellation**: A caller whose task is cancelled leaves at once, with ``SharedRequestError/cancelled``, and the
///   request goes on for the others. When the last one leaves, the request's task is cancelled: no request runs on
///   that nobody waits for. Who comes after that starts a new request, even if the cancelled one has not ended.
/// - **Afterwards** nothing is kept: a request that is over is forgotten, with its value.
/// - **Priority**: The request runs with the priority of the caller that started it, and is raised to that of a more
///   urgent one that joins, where the system can do that.
/// - **Cost**: Constant for each caller.
public final class SharedRequests<Key: Hashable & Sendable, Value: Sendable, Failure: Error>: Sendable {
  private typealias Outcome = MulticastChannel<Result<Value, Failure>, Never>

  /// What the callers of one request share.
  ///
  /// The task is there before its first caller waits.
  private struct Request: Sendable {
    let outcome = Outcome(replay: 1, buffering: .unbounded)
    let task = CurrentValueRelay<Task<Void, Never>?>(nil)
  }

  private let state = Lock(SharedRequestsState<Key, Request>())
  private let events: RepositoryEvents
  private let executor: (any TaskExecutor)?

  /// Creates a place to share requests in.
  ///
  /// - Parameter events: Where it tells what happens.
  public convenience init(events: RepositoryEvents = RepositoryEvents()) {
    self.init(events: events, executor: nil)
  }

  /// - Parameters:
  ///   - events: Where it tells what happens.
  ///   - executor: Where requests run; `nil` for the threads that all tasks share.
  init(events: RepositoryEvents, executor: (any TaskExecutor)?) {
    (self.events, self.executor) = (events, executor)
  }

  /// The value of a key, from the request that is under way, or from a new one.
  ///
  /// - Parameters:
  ///   - key: What is asked for. Calls with equal keys must ask for the same.
  ///   - request: Makes the request. Runs once for all callers of the key, in a task of its own, which is cancelled when
  ///     the last of them is.
  /// - Throws: ``SharedRequestError``: the request's failure, or that the calling task was cancelled.
  public func value(
    for key: Key, request: @escaping @Sendable () async throws(Failure) -> Value
  ) async throws(SharedRequestError<Failure>) -> Value {
    if Task.isCancelled { throw .cancelled }
    let place = state.withLock { $0.join(key) { Request() } }
    if place.isFirst {
      events.emit(.requestStarted(key: "\(key)"))
      let task = Task(executorPreference: executor) {
        await self.perform(request, of: place.request, key: key, number: place.number)
      }
      // Before this caller can leave, so the last one to leave finds the task.
      place.request.task.send(task)
    } else {
      events.emit(.requestJoined(key: "\(key)", callers: place.callers))
      escalate(place.request)
    }

    var outcome: Result<Value, Failure>?
    for await result in place.request.outcome.stream {
      outcome = result
      break
    }
    if case .cancel = state.withLock({ $0.leave(key, number: place.number) }) {
      place.request.task.value?.cancel()
      events.emit(.requestCancelled(key: "\(key)"))
    }
    switch outcome {
    case .success(let value): return value
    case .failure(let failure): throw .failed(failure)
    case nil: throw .cancelled
    }
  }

  private func perform(
    _ perform: @Sendable () async throws(Failure) -> Value, of request: Request, key: Key, number: UInt64
  ) async {
    let outcome: Result<Value, Failure>
    do throws(Failure) {
      outcome = .success(try await perform())
    } catch {
      outcome = .failure(error)
    }
    // Forgotten first, so that who comes from here on starts another request; who came before is in the channel's way.
    guard state.withLock({ $0.finish(key, number: number) }) else { return }
    switch outcome {
    case .success: events.emit(.requestFinished(key: "\(key)"))
    case .failure(let error): events.emit(.requestFailed(key: "\(key)", reason: String(describing: error)))
    }
    request.outcome.send(outcome)
    request.outcome.finish()
  }

  private func escalate(_ request: Request) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      request.task.value?.escalatePriority(to: Task.currentPriority)
    }
  }
}
