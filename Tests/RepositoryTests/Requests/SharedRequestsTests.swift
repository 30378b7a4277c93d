import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct SharedRequestsTests {
  struct Failure: Error, Hashable {}
  typealias Requests = SharedRequests<String, Int, Failure>
  typealias Outcome = Result<Int, SharedRequestError<Failure>>

  private let events = RepositoryEvents(replay: 1000)
  /// The number of requests so far.
  private let started = CurrentValueRelay(0)
  /// The number of requests that ended because they were cancelled.
  private let cancelled = CurrentValueRelay(0)

  private func requests() -> Requests { Requests(events: events) }

  /// A request that waits at a gate and returns its number.
  private func request(_ gate: Gate) -> @Sendable () async throws(Failure) -> Int {
    { [started, cancelled] () throws(Failure) in
      let number = started.update { started in
        started += 1
        return started
      }
      await gate.pass()
      if Task.isCancelled {
        cancelled.update { $0 += 1 }
        throw Failure()
      }
      return number
    }
  }

  private func caller(
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

  /// Waits until a request has the given number of callers.
  private func callers(_ count: Int) async {
    await events.stream.reaches { $0 == .requestJoined(key: "a", callers: count) }
  }

  @Test func `A hundred callers share one request, and all get its value`() async {
    let requests = requests()
    let gate = Gate()
    let callers = (0..<100).map { _ in caller(of: requests, request(gate)) }
    await self.callers(100)
    gate.open()
    for caller in callers { #expect(await caller.value == .success(1)) }
    #expect(started.value == 1)
  }

  @Test func `All callers of a failed request get its failure`() async {
    let requests = requests()
    let gate = Gate()
    let failing: @Sendable () async throws(Failure) -> Int = { () throws(Failure) in
      await gate.pass()
      throw Failure()
    }
    let callers = (0..<3).map { _ in caller(of: requests, failing) }
    await self.callers(3)
    gate.open()
    for caller in callers { #expect(await caller.value == .failure(.failed(Failure()))) }
    #expect(await events.stream.first(4).last == .requestFailed(key: "a", reason: "Failure()"))
  }

  @Test func `The request continues until the last of a hundred callers is cancelled`() async {
    let requests = requests()
    let gate = Gate()
    let callers = (0..<100).map { _ in caller(of: requests, request(gate)) }
    await self.callers(100)
    await gate.arrivals()
    for caller in callers.dropLast() { caller.cancel() }
    for caller in callers.dropLast() { #expect(await caller.value == .failure(.cancelled)) }
    #expect(cancelled.value == 0)
    #expect(started.value == 1)
    callers[99].cancel()
    #expect(await callers[99].value == .failure(.cancelled))
    await cancelled.stream.reaches { $0 == 1 }
    #expect(await events.stream.first(101).last == .requestCancelled(key: "a"))
  }

  @Test func `The last of a hundred callers gets the value after the other callers have left`() async {
    let requests = requests()
    let gate = Gate()
    let callers = (0..<100).map { _ in caller(of: requests, request(gate)) }
    await self.callers(100)
    for caller in callers.dropLast() { caller.cancel() }
    for caller in callers.dropLast() { #expect(await caller.value == .failure(.cancelled)) }
    gate.open()
    #expect(await callers[99].value == .success(1))
    #expect(cancelled.value == 0)
  }

  @Test func `A caller after a cancelled request starts another request, even if the first has not ended`() async {
    let requests = requests()
    let stubborn = Gate()
    let ended = Gate()
    let first = caller(of: requests) { () throws(Failure) in
      // Ignores its cancellation.
      await Task { await stubborn.pass() }.value
      ended.open()
      return 1
    }
    await stubborn.arrivals()
    first.cancel()
    #expect(await first.value == .failure(.cancelled))

    let gate = Gate()
    let second = caller(of: requests) { () throws(Failure) in
      await gate.pass()
      return 2
    }
    await gate.arrivals()
    // The end of the first request affects neither the second nor the callers that join it.
    stubborn.open()
    await ended.pass()
    let third = caller(of: requests) { () throws(Failure) in 3 }
    await callers(2)
    gate.open()
    #expect(await second.value == .success(2))
    #expect(await third.value == .success(2))
    #expect(
      await events.stream.first(5) == [
        .requestStarted(key: "a"), .requestCancelled(key: "a"), .requestStarted(key: "a"),
        .requestJoined(key: "a", callers: 2), .requestFinished(key: "a"),
      ])
  }

  @Test func `A caller after a completed request starts another request`() async {
    let requests = requests()
    let gate = Gate()
    gate.open()
    #expect(await caller(of: requests, request(gate)).value == .success(1))
    #expect(await caller(of: requests, request(gate)).value == .success(2))
  }

  @Test func `Each key has its own request`() async {
    let requests = requests()
    let gate = Gate()
    let one = caller(of: requests, for: "a", request(gate))
    let other = caller(of: requests, for: "b", request(gate))
    await gate.arrivals(2)
    one.cancel()
    #expect(await one.value == .failure(.cancelled))
    gate.open()
    #expect(await other.value.isSuccess)
  }

  @Test func `A caller that is already cancelled starts no request`() async {
    let requests = requests()
    let gate = Gate()
    let caller = Task {
      await gate.pass()
      return await self.caller(of: requests, self.request(gate)).value
    }
    gate.open()
    #expect(await caller.value.isSuccess)
    let late: Task<Outcome, Never> = Task { [started] in
      // Returns only when the task is cancelled.
      await Gate().pass()
      do throws(SharedRequestError<Failure>) {
        let value = try await requests.value(for: "a") { () throws(Failure) in
          started.update { $0 += 1 }
          return 0
        }
        return .success(value)
      } catch {
        return .failure(error)
      }
    }
    late.cancel()
    #expect(await late.value == .failure(.cancelled))
    #expect(started.value == 1)
  }

  @Test func `A caller that isn't cancelled gets a value while others join and leave at various times`() async {
    let requests = requests()
    let running = CurrentValueRelay(0)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<400 {
        let caller = caller(of: requests, for: "\(number % 3)") { [running] () throws(Failure) in
          running.update { $0 += 1 }
          defer { running.update { $0 -= 1 } }
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
    await running.stream.reaches { $0 == 0 }
  }
}

extension Result {
  fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}
