import Dispatch
import Foundation
import Multicast
import MulticastTesting
import TestSupport
import Testing

@testable import Repository

@Suite(.timeLimit(.minutes(15))) struct SharedRequestsTests {
  struct Failure: Error, Hashable {}
  typealias Requests = SharedRequests<String, Int, Failure>
  typealias Outcome = Result<Int, SharedRequestError<Failure>>

  private let events = RepositoryEvents(replay: 1000)
  /// The number of requests so far.
  private let startedCount = CurrentValueRelay(0)
  /// The number of requests that ended because they were cancelled.
  private let cancelledCount = CurrentValueRelay(0)

  private func makeRequests() -> Requests { Requests(events: events) }

  /// Returns a request that waits at a gate and returns its number.
  private func makeRequest(waitingAt gate: Gate) -> @Sendable () async throws(Failure) -> Int {
    { [startedCount, cancelledCount] () throws(Failure) in
      let number = startedCount.update { count in
        count += 1
        return count
      }
      await gate.pass()
      if Task.isCancelled {
        cancelledCount.update { $0 += 1 }
        throw Failure()
      }
      return number
    }
  }

  /// Starts a task that asks for the value of a key, and returns the task.
  private func startCaller(
    of requests: Requests, for key: String = "a", _ request: @escaping @Sendable () async throws(Failure) -> Int
  ) -> Task<Outcome, Never> {
    Task {
      do throws(SharedRequestError<Failure>) {
        return .success(try await requests.value(for: key, request: request))
      } catch {
        return .failure(error)
      }
    }
  }

  /// Waits until the request for the key `a` has the given number of callers, at least 2.
  private func waitForCallers(_ count: Int) async {
    await events.stream.reaches { $0 == .requestJoined(key: "a", callers: count) }
  }

  @Test func `A hundred callers share one request, and all get its value`() async {
    let requests = makeRequests()
    let gate = Gate()
    let callers = (0..<100).map { _ in startCaller(of: requests, makeRequest(waitingAt: gate)) }
    await waitForCallers(100)
    gate.open()
    for caller in callers { #expect(await caller.value == .success(1)) }
    #expect(startedCount.value == 1)
  }

  @Test func `All callers of a failed request get its failure`() async {
    let requests = makeRequests()
    let gate = Gate()
    let failingRequest: @Sendable () async throws(Failure) -> Int = { () throws(Failure) in
      await gate.pass()
      throw Failure()
    }
    let callers = (0..<3).map { _ in startCaller(of: requests, failingRequest) }
    await waitForCallers(3)
    gate.open()
    for caller in callers { #expect(await caller.value == .failure(.failed(Failure()))) }
    #expect(await events.stream.first(4).last == .requestFailed(key: "a", reason: "Failure()"))
  }

  @Test func `The request continues until the last of a hundred callers is cancelled`() async {
    let requests = makeRequests()
    let gate = Gate()
    let callers = (0..<100).map { _ in startCaller(of: requests, makeRequest(waitingAt: gate)) }
    await waitForCallers(100)
    await gate.arrivals()
    for caller in callers.dropLast() { caller.cancel() }
    for caller in callers.dropLast() { #expect(await caller.value == .failure(.cancelled)) }
    #expect(cancelledCount.value == 0)
    #expect(startedCount.value == 1)
    callers[99].cancel()
    #expect(await callers[99].value == .failure(.cancelled))
    await cancelledCount.stream.reaches { $0 == 1 }
    #expect(await events.stream.first(101).last == .requestCancelled(key: "a"))
  }

  @Test func `The last of a hundred callers gets the value after the other callers have left`() async {
    let requests = makeRequests()
    let gate = Gate()
    let callers = (0..<100).map { _ in startCaller(of: requests, makeRequest(waitingAt: gate)) }
    await waitForCallers(100)
    for caller in callers.dropLast() { caller.cancel() }
    for caller in callers.dropLast() { #expect(await caller.value == .failure(.cancelled)) }
    gate.open()
    #expect(await callers[99].value == .success(1))
    #expect(cancelledCount.value == 0)
  }

  @Test func `A caller after a cancelled request starts another request, even if the first hasn't ended`() async {
    let requests = makeRequests()
    let firstGate = Gate()
    let firstEnded = Gate()
    let first = startCaller(of: requests) { () throws(Failure) in
      // Ignores its cancellation.
      await Task { await firstGate.pass() }.value
      firstEnded.open()
      return 1
    }
    await firstGate.arrivals()
    first.cancel()
    #expect(await first.value == .failure(.cancelled))

    let secondGate = Gate()
    let second = startCaller(of: requests) { () throws(Failure) in
      await secondGate.pass()
      return 2
    }
    await secondGate.arrivals()
    // The end of the first request affects neither the second nor the callers that join it.
    firstGate.open()
    await firstEnded.pass()
    let third = startCaller(of: requests) { () throws(Failure) in 3 }
    await waitForCallers(2)
    secondGate.open()
    #expect(await second.value == .success(2))
    #expect(await third.value == .success(2))
    #expect(
      await events.stream.first(5) == [
        .requestStarted(key: "a"), .requestCancelled(key: "a"), .requestStarted(key: "a"),
        .requestJoined(key: "a", callers: 2), .requestFinished(key: "a"),
      ])
  }

  @Test func `A caller after a completed request starts another request`() async {
    let requests = makeRequests()
    let gate = Gate()
    gate.open()
    #expect(await startCaller(of: requests, makeRequest(waitingAt: gate)).value == .success(1))
    #expect(await startCaller(of: requests, makeRequest(waitingAt: gate)).value == .success(2))
  }

  @Test func `Each key has its own request`() async {
    let requests = makeRequests()
    let gate = Gate()
    let one = startCaller(of: requests, for: "a", makeRequest(waitingAt: gate))
    let other = startCaller(of: requests, for: "b", makeRequest(waitingAt: gate))
    await gate.arrivals(2)
    one.cancel()
    #expect(await one.value == .failure(.cancelled))
    gate.open()
    #expect(await other.value.isSuccess)
  }

  @Test func `A caller that is already cancelled starts no request`() async {
    let requests = makeRequests()
    let gate = Gate()
    // For comparison, a caller that isn't cancelled starts a request, the only one that is counted at the end.
    let caller = Task {
      await gate.pass()
      return await self.startCaller(of: requests, self.makeRequest(waitingAt: gate)).value
    }
    gate.open()
    #expect(await caller.value.isSuccess)
    let cancelledCaller: Task<Outcome, Never> = Task { [startedCount] in
      // Returns only when the task is cancelled.
      await Gate().pass()
      do throws(SharedRequestError<Failure>) {
        let value = try await requests.value(for: "a") { () throws(Failure) in
          startedCount.update { $0 += 1 }
          return 0
        }
        return .success(value)
      } catch {
        return .failure(error)
      }
    }
    cancelledCaller.cancel()
    #expect(await cancelledCaller.value == .failure(.cancelled))
    #expect(startedCount.value == 1)
  }

  @Test func `A request that is ended before its task is registered is cancelled, and its caller gets the failure`()
    async
  {
    let requests = SharedRequests<StartingKey, Int, Failure>(events: events)
    let key = StartingKey { requests.end(with: Failure()) { _ in true } }
    let gate = Gate()
    let wasCancelled = CurrentValueRelay<Bool?>(nil)
    await #expect(throws: SharedRequestError.failed(Failure())) {
      try await requests.value(for: key) { () throws(Failure) in
        // Ignores its cancellation until the caller has got the failure.
        await Task { await gate.pass() }.value
        wasCancelled.send(Task.isCancelled)
        return 1
      }
    }
    gate.open()
    await wasCancelled.stream.reaches { $0 != nil }
    #expect(wasCancelled.value == true)
  }

  @Test(arguments: [true, false])
  func `A request gets the higher priority of a caller that joins it`(joinsBeforeTaskIsRegistered: Bool) {
    let (executor, joinExecutor) = (ManualTaskExecutor(), ManualTaskExecutor())
    let requests = SharedRequests<StartingKey, Int, Failure>(events: events, executor: executor)
    let (gate, hasBegun) = (Gate(), CurrentValueRelay(false))
    let priorities = CurrentValueRelay<[TaskPriority]>([])
    let request = { @Sendable () async throws(Failure) -> Int in
      await gate.pass()
      priorities.update { $0.append(Task.currentPriority) }
      return 1
    }
    let join = { @Sendable in
      _ = Task(executorPreference: joinExecutor, priority: .high) {
        try await requests.value(for: StartingKey {}, request: request)
      }
      // The job that joins runs on another thread. If it ran inside the job of the first caller, it would change the
      // priority of the tasks that the first caller creates.
      let hasJoined = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        joinExecutor.runUntilIdle()
        hasJoined.signal()
      }
      hasJoined.wait()
    }
    let key = StartingKey {
      // The key is described again when the request ends.
      let isFirst = !hasBegun.update { exchange(&$0, with: true) }
      if isFirst, joinsBeforeTaskIsRegistered { join() }
    }
    _ = Task(executorPreference: executor, priority: .low) {
      try await requests.value(for: key, request: request)
    }
    executor.runUntilIdle()
    if !joinsBeforeTaskIsRegistered { join() }
    gate.open()
    executor.runUntilIdle()
    #expect(priorities.value == [.high])
  }

  @Test func `A caller that isn't cancelled gets a value while others join and leave at various times`() async {
    let requests = makeRequests()
    let runningCount = CurrentValueRelay(0)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<400 {
        let caller = startCaller(of: requests, for: "\(number % 3)") { [runningCount] () throws(Failure) in
          runningCount.update { $0 += 1 }
          defer { runningCount.update { $0 -= 1 } }
          for _ in 0..<number % 5 { await Task.yield() }
          return number
        }
        group.addTask {
          if number % 2 == 0 { caller.cancel() }
          let outcome = await caller.value
          if number % 2 == 1 { #expect(outcome.isSuccess) }
        }
      }
    }
    // No caller waits for the end of a cancelled request, so the test does.
    await runningCount.stream.reaches { $0 == 0 }
  }
}

/// A key that calls a closure whenever it is described.
///
/// The first caller's key is described for the event that the request has started, before the task of the request is
/// registered. Each later event of the request describes a key again.
private struct StartingKey: Hashable, CustomStringConvertible, Sendable {
  let onDescription: @Sendable () -> Void

  var description: String {
    onDescription()
    return "a"
  }

  static func == (left: Self, right: Self) -> Bool { true }

  func hash(into hasher: inout Hasher) {}
}

extension Result {
  fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}
