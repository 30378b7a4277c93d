import Testing

@testable import Repository

@Suite struct PendingCallsTests {
  @Test func `A call gets an outcome that arrives before the call waits`() async {
    let calls = PendingCalls<Int, String>()
    calls.open(1)
    #expect(calls.claim(1) == true)
    calls.end(1, "first")
    #expect(calls.claim(1) == false)
    // This has no effect, because the call already has its outcome.
    calls.end(1, "second")
    #expect(await calls.outcome(of: 1) == "first")
    #expect(calls.isEmpty == true)
  }

  @Test func `A waiting call gets the outcome of its own id`() async {
    let calls = PendingCalls<Int, String>()
    calls.open(1)
    calls.open(2)
    async let first = calls.outcome(of: 1)
    async let second = calls.outcome(of: 2)
    calls.end(2, "b")
    calls.end(1, "a")
    #expect(await first == "a")
    #expect(await second == "b")
    #expect(calls.isEmpty == true)
  }

  @Test func `An outcome without a call changes nothing`() {
    let calls = PendingCalls<Int, String>()
    calls.end(1, "a")
    #expect(calls.claim(1) == false)
    #expect(calls.isEmpty == true)
    calls.open(1)
    calls.close(1)
    calls.end(1, "a")
    #expect(calls.isEmpty == true)
  }

  @Test func `Cancelling the task of a call, before or while the call waits, ends the call once`() async {
    let calls = PendingCalls<Int, String>()
    calls.open(1)
    // The task is cancelled before the call waits.
    let cancelledEarly = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await calls.outcome(of: 1, ifCancelled: "cancelled")
    }
    #expect(await cancelledEarly.value == "cancelled")

    calls.open(2)
    // Whether this call already waits when its task is cancelled depends on the scheduling. The outcome doesn't.
    let waiting = Task { await calls.outcome(of: 2, ifCancelled: "cancelled") }
    waiting.cancel()
    #expect(await waiting.value == "cancelled")
    calls.end(2, "late")
    #expect(calls.isEmpty == true)
  }

  @Test func `Cancelling the task of a claimed call, before or while the call waits, doesn't end the call`() async {
    let calls = PendingCalls<Int, String>()
    calls.open(1)
    #expect(calls.claim(1) == true)
    let cancelledEarly = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await calls.outcome(of: 1, ifCancelled: "cancelled")
    }
    calls.open(2)
    let waiting = Task { await calls.outcome(of: 2, ifCancelled: "cancelled") }
    #expect(calls.claim(2) == true)
    waiting.cancel()
    calls.end(1, "a")
    calls.end(2, "b")
    #expect(await cancelledEarly.value == "a")
    #expect(await waiting.value == "b")
    #expect(calls.isEmpty == true)
    #expect(calls.claim(1) == false)
  }

  @Test func `Cancelling a call that has an outcome keeps that outcome`() async {
    let calls = PendingCalls<Int, String>()
    calls.open(1)
    calls.end(1, "a")
    let call = Task { await calls.outcome(of: 1, ifCancelled: "cancelled") }
    call.cancel()
    #expect(await call.value == "a")
  }
}
