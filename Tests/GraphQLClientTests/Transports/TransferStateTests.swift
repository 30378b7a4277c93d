import Foundation
import MulticastTesting
import Testing

@testable import GraphQLClient

/// The behavior of ``TransferState``.
///
/// The name of a test states the input, the state and the result. Waiters are numbers, and chunks are text. The action
/// `ignore` means that there is nothing to do; an end or a cancellation that returns it may still change the state.
struct TransferStateTests {
  private static let connectionLost = URLError(.networkConnectionLost)

  private static func runningMachine() -> Machine {
    var machine = Machine()
    #expect(machine.begin() == .send)
    return machine
  }

  /// Returns a running machine that has given the head to the caller.
  private static func receivingMachine() -> Machine {
    var machine = runningMachine()
    #expect(machine.receiveHead(200) == .keep)
    #expect(machine.awaitHead(1) == .resumeHead(1, status: 200))
    return machine
  }

  private static func endedMachine() -> Machine {
    var machine = receivingMachine()
    #expect(machine.end(nil) == .ignore)
    return machine
  }

  private static func cancelledMachine() -> Machine {
    var machine = receivingMachine()
    #expect(machine.cancel() == .stop(head: nil, chunk: nil))
    return machine
  }

  // MARK: - Begin

  @Test func begin_whenCreated_sends() {
    var machine = Machine()
    #expect(!machine.isRunning)
    #expect(machine.begin() == .send)
    #expect(machine.isRunning)
  }

  @Test func begin_whenCancelled_skips() {
    var machine = Machine()
    #expect(machine.cancel() == .ignore)
    #expect(machine.begin() == .skip)
    #expect(!machine.isRunning)
    #expect(machine.awaitHead(1) == .failHead(1, .cancelled))
  }

  @Test func cancel_whenCreated_saysThatNothingWasSent() {
    var waiting = TransferState<Int, Int>()
    guard case .wait = waiting.awaitHead(1), case .stop(1, nil, let error) = waiting.cancel() else {
      Issue.record("expected the waiter")
      return
    }
    #expect(error.code == .cancelled && error.impliesUnsentRequest)
    var cancelled = TransferState<Int, Int>()
    _ = cancelled.cancel()
    guard case .resume(1, .failure(let laterError)) = cancelled.awaitHead(1) else {
      Issue.record("expected a failure")
      return
    }
    #expect(laterError.code == .cancelled && laterError.impliesUnsentRequest)
  }

  @Test func cancel_whenRunning_doesNotSayThatNothingWasSent() {
    var running = TransferState<Int, Int>()
    #expect(running.begin() == .send)
    guard case .wait = running.awaitHead(1), case .stop(1, nil, let error) = running.cancel() else {
      Issue.record("expected the waiter")
      return
    }
    #expect(error.code == .cancelled && !error.impliesUnsentRequest)
  }

  // MARK: - Head

  @Test func awaitHead_whenCreated_waitsForTheHead() {
    var machine = Machine()
    #expect(machine.awaitHead(1) == .wait)
    #expect(machine.begin() == .send)
    #expect(machine.receiveHead(204) == .resumeHead(1, status: 204))
  }

  @Test func awaitHead_whenTheHeadHasArrived_returnsIt() {
    var machine = Self.runningMachine()
    #expect(machine.receiveHead(204) == .keep)
    #expect(machine.awaitHead(1) == .resumeHead(1, status: 204))
  }

  @Test func awaitHead_whenEndedAfterTheHead_returnsIt() {
    var machine = Self.runningMachine()
    #expect(machine.receiveHead(200) == .keep)
    #expect(machine.receiveChunk("a") == .pause)
    #expect(machine.end(Self.connectionLost) == .ignore)
    #expect(machine.awaitHead(1) == .resumeHead(1, status: 200))
    #expect(machine.take(2) == .give("a", resumesNetwork: true))
    #expect(machine.take(3) == .end(.networkConnectionLost))
  }

  @Test func awaitHead_whenEndedBeforeTheHead_fails() {
    var machine = Self.runningMachine()
    #expect(machine.end(Self.connectionLost) == .ignore)
    #expect(machine.awaitHead(1) == .failHead(1, .networkConnectionLost))
  }

  @Test func awaitHead_whenEndedWithoutHeadOrError_failsWithBadServerResponse() {
    var machine = Self.runningMachine()
    #expect(machine.end(nil) == .ignore)
    #expect(machine.awaitHead(1) == .failHead(1, .badServerResponse))
  }

  @Test func awaitHead_whenCancelled_failsEvenIfTheHeadHasArrived() {
    var machine = Self.runningMachine()
    #expect(machine.receiveHead(200) == .keep)
    #expect(machine.cancel() == .stop(head: nil, chunk: nil))
    #expect(machine.awaitHead(1) == .failHead(1, .cancelled))
  }

  @Test func receiveHead_whenNotRunning_isIgnored() {
    var created = Machine()
    #expect(created.receiveHead(200) == .ignore)
    #expect(created.awaitHead(1) == .wait)
    var ended = Self.runningMachine()
    #expect(ended.end(nil) == .ignore)
    #expect(ended.receiveHead(200) == .ignore)
    var cancelled = Self.cancelledMachine()
    #expect(cancelled.receiveHead(200) == .ignore)
  }

  @Test func receiveHead_whenTheHeadHasArrived_isIgnored() {
    var machine = Self.runningMachine()
    #expect(machine.receiveHead(200) == .keep)
    #expect(machine.receiveHead(500) == .ignore)
    #expect(machine.awaitHead(1) == .resumeHead(1, status: 200))
    #expect(machine.receiveHead(500) == .ignore)
  }

  // MARK: - Chunks

  @Test func receiveChunk_whenTheCallerWaits_resumesTheCaller() {
    var machine = Self.receivingMachine()
    #expect(machine.take(2) == .wait)
    #expect(machine.receiveChunk("a") == .resumeChunk(2, "a"))
    #expect(machine.take(3) == .wait)
    #expect(machine.receiveChunk("b") == .resumeChunk(3, "b"))
  }

  @Test func receiveChunk_whenTheCallerDoesNotWait_pausesTheNetwork() {
    var machine = Self.receivingMachine()
    #expect(machine.receiveChunk("a") == .pause)
  }

  @Test func receiveChunk_beforeTheHead_isKept() {
    var machine = Self.runningMachine()
    #expect(machine.receiveChunk("a") == .pause)
    #expect(machine.receiveHead(200) == .keep)
    #expect(machine.awaitHead(1) == .resumeHead(1, status: 200))
    #expect(machine.take(2) == .give("a", resumesNetwork: true))
  }

  @Test func receiveChunk_whenNotRunning_isRefused() {
    var created = Machine()
    #expect(created.receiveChunk("a") == .refuse)
    var ended = Self.endedMachine()
    #expect(ended.receiveChunk("a") == .refuse)
    #expect(ended.take(2) == .end(nil))
    var cancelled = Self.cancelledMachine()
    #expect(cancelled.receiveChunk("a") == .refuse)
    #expect(cancelled.take(2) == .end(.cancelled))
  }

  @Test func take_whenAChunkIsPending_returnsIt() {
    var machine = Self.receivingMachine()
    #expect(machine.receiveChunk("a") == .pause)
    #expect(machine.take(2) == .give("a", resumesNetwork: true))
    #expect(machine.take(3) == .wait)
  }

  @Test func take_whenSeveralChunksArePending_resumesTheNetworkWithTheLastChunk() {
    var machine = Self.receivingMachine()
    #expect(machine.receiveChunk("a") == .pause)
    #expect(machine.receiveChunk("b") == .pause)
    #expect(machine.receiveChunk("c") == .pause)
    #expect(machine.take(2) == .give("a", resumesNetwork: false))
    #expect(machine.take(3) == .give("b", resumesNetwork: false))
    #expect(machine.take(4) == .give("c", resumesNetwork: true))
    #expect(machine.take(5) == .wait)
  }

  @Test func take_whenEnded_returnsThePendingChunksBeforeTheEnd() {
    for error in [nil, Self.connectionLost] {
      var machine = Self.receivingMachine()
      #expect(machine.receiveChunk("a") == .pause)
      #expect(machine.end(error) == .ignore)
      #expect(machine.take(2) == .give("a", resumesNetwork: true))
      #expect(machine.take(3) == .end(error?.code))
      #expect(machine.take(4) == .end(error?.code))
    }
  }

  @Test func take_whenCancelled_endsImmediately() {
    var machine = Self.receivingMachine()
    #expect(machine.receiveChunk("a") == .pause)
    #expect(machine.cancel() == .stop(head: nil, chunk: nil))
    #expect(machine.take(2) == .end(.cancelled))
    #expect(machine.take(3) == .end(.cancelled))
  }

  // MARK: - End

  @Test func end_whenTheCallerAwaitsTheHead_failsTheWaiter() {
    var machineWithError = Self.runningMachine()
    #expect(machineWithError.awaitHead(1) == .wait)
    #expect(machineWithError.end(Self.connectionLost) == .failHead(1, .networkConnectionLost))
    var machineWithoutError = Self.runningMachine()
    #expect(machineWithoutError.awaitHead(1) == .wait)
    #expect(machineWithoutError.end(nil) == .failHead(1, .badServerResponse))
    #expect(!machineWithoutError.isRunning)
  }

  @Test func end_whenTheCallerWaitsForAChunk_endsTheBody() {
    for error in [nil, Self.connectionLost] {
      var machine = Self.receivingMachine()
      #expect(machine.take(2) == .wait)
      #expect(machine.end(error) == .endBody(2, error?.code))
      #expect(machine.take(3) == .end(error?.code))
    }
  }

  @Test func end_whenNotRunning_isIgnored() {
    var created = Machine()
    #expect(created.end(Self.connectionLost) == .ignore)
    #expect(created.begin() == .send)
    var ended = Self.endedMachine()
    #expect(ended.end(Self.connectionLost) == .ignore)
    #expect(ended.take(2) == .end(nil))
    var cancelled = Self.cancelledMachine()
    #expect(cancelled.end(nil) == .ignore)
    #expect(cancelled.take(2) == .end(.cancelled))
  }

  // MARK: - Cancel

  @Test func cancel_whenTheCallerAwaitsTheHead_returnsItsWaiter() {
    var machine = Self.runningMachine()
    #expect(machine.awaitHead(1) == .wait)
    #expect(machine.cancel() == .stop(head: 1, chunk: nil))
    #expect(!machine.isRunning)
    #expect(machine.receiveHead(200) == .ignore)
    #expect(machine.end(Self.connectionLost) == .ignore)
  }

  @Test func cancel_whenTheCallerWaitsForAChunk_returnsItsWaiter() {
    var machine = Self.receivingMachine()
    #expect(machine.take(2) == .wait)
    #expect(machine.cancel() == .stop(head: nil, chunk: 2))
    #expect(machine.receiveChunk("a") == .refuse)
    #expect(machine.end(nil) == .ignore)
  }

  @Test func cancel_beforeBegin_returnsTheWaiter() {
    var machine = Machine()
    #expect(machine.awaitHead(1) == .wait)
    #expect(machine.cancel() == .stop(head: 1, chunk: nil))
    #expect(machine.begin() == .skip)
  }

  @Test func cancel_whenEnded_dropsThePendingChunks() {
    var machine = Self.receivingMachine()
    #expect(machine.receiveChunk("a") == .pause)
    #expect(machine.end(nil) == .ignore)
    #expect(machine.cancel() == .ignore)
    #expect(machine.take(2) == .end(.cancelled))
  }

  @Test func cancel_whenCancelled_isIgnored() {
    var machine = Self.cancelledMachine()
    #expect(machine.cancel() == .ignore)
    var created = Machine()
    #expect(created.cancel() == .ignore)
    #expect(created.cancel() == .ignore)
  }

  // MARK: - Random runs

  private static let seeds: Range<UInt64> = 0..<200
  private static let stepsPerRun = 150

  /// A failure reports the seed and the step of the run.
  @Test func `With random inputs, a transfer returns each waiter exactly once, and loses no chunk unless cancelled`() {
    var seenKinds: Set<String> = []
    var totalStepCount = 0
    for seed in Self.seeds {
      var run = RandomTransfer(seed: seed)
      for step in 0..<Self.stepsPerRun {
        run.step()
        totalStepCount += 1
        if let fault = run.fault {
          Issue.record("seed \(seed), step \(step): \(fault)\nafter \(run.log.suffix(20).joined(separator: ", "))")
          return
        }
      }
      run.finish()
      if let fault = run.fault {
        Issue.record("seed \(seed), at the end: \(fault)\nafter \(run.log.suffix(20).joined(separator: ", "))")
        return
      }
      seenKinds.formUnion(run.kinds)
    }
    #expect(totalStepCount == 30_000)
    // Every action of the machine occurred.
    #expect(
      seenKinds == [
        "send", "skip", "wait", "keep", "ignore", "pause", "refuse", "resumeHead", "failHead", "resumeChunk", "give",
        "end", "endBody", "stop",
      ])
  }
}

/// An action of the machine, in an equatable form.
private enum Action: Equatable {
  case send, skip, wait, keep, ignore, pause, refuse
  case resumeHead(Int, status: Int)
  case failHead(Int, URLError.Code)
  case resumeChunk(Int, String)
  case give(String, resumesNetwork: Bool)
  case end(URLError.Code?)
  case endBody(Int, URLError.Code?)
  case stop(head: Int?, chunk: Int?)

  /// The name of the case.
  var kind: String { String("\(self)".prefix { $0 != "(" }) }
}

/// The state machine with numbers as waiters and text as chunks.
private struct Machine {
  private var state = TransferState<Int, Int>()

  var isRunning: Bool { state.isRunning }

  mutating func begin() -> Action {
    switch state.begin() {
    case .send: .send
    case .skip: .skip
    }
  }

  mutating func awaitHead(_ waiter: Int) -> Action {
    switch state.awaitHead(waiter) {
    case .wait: .wait
    case .resume(let waiter, .success(let head)): .resumeHead(waiter, status: head.status)
    case .resume(let waiter, .failure(let error)): .failHead(waiter, error.code)
    }
  }

  mutating func receiveHead(_ status: Int) -> Action {
    switch state.receive(head: HTTPHead(status: status, headers: ["a": "1"])) {
    case .resume(let waiter, let head): .resumeHead(waiter, status: head.status)
    case .keep: .keep
    case .ignore: .ignore
    }
  }

  mutating func receiveChunk(_ text: String) -> Action {
    switch state.receive(chunk: Data(text.utf8)) {
    case .resume(let waiter, let chunk): .resumeChunk(waiter, String(decoding: chunk, as: UTF8.self))
    case .pause: .pause
    case .refuse: .refuse
    }
  }

  mutating func take(_ waiter: Int) -> Action {
    switch state.take(waiter) {
    case .wait: .wait
    case .give(let chunk, let resumesNetwork):
      .give(String(decoding: chunk, as: UTF8.self), resumesNetwork: resumesNetwork)
    case .end(let error): .end(error?.code)
    }
  }

  mutating func end(_ error: URLError?) -> Action {
    switch state.end(error: error) {
    case .failHead(let waiter, let error): .failHead(waiter, error.code)
    case .endBody(let waiter, let error): .endBody(waiter, error?.code)
    case .ignore: .ignore
    }
  }

  mutating func cancel() -> Action {
    switch state.cancel() {
    case .stop(let head, let chunk, _): .stop(head: head, chunk: chunk)
    case .ignore: .ignore
    }
  }
}

/// Gives a transfer random inputs, and checks its actions.
///
/// The caller fulfills its part of the contract: it awaits the head once, and then takes one chunk at a time. Once the
/// transfer has begun, the network side doesn't begin it again. If the seed is even, the network side also pauses when
/// the machine requires it.
private struct RandomTransfer {
  private var machine = Machine()
  private var generator: SplitMix64
  private let networkObeysPause: Bool
  /// Whether cancellation is rare, so that long bodies occur; true for every other pair of seeds.
  private let cancelsRarely: Bool

  private(set) var fault: String?
  private(set) var log: [String] = []
  private(set) var kinds: Set<String> = []

  private var hasBegun = false
  private var hasEnded = false
  private var endCode: URLError.Code?
  private var isCancelled = false
  private var isPaused = false
  private var hasAwaitedHead = false
  private var hasHead = false

  private var waiterCount = 0
  /// The waiters that the machine holds, each of which it must return.
  private var heldWaiters: Set<Int> = []
  private var chunkWaiter: Int?

  private var sentCount = 0
  private var accepted: [String] = []
  private var given: [String] = []

  init(seed: UInt64) {
    generator = SplitMix64(seed: seed)
    networkObeysPause = seed % 2 == 0
    cancelsRarely = seed / 2 % 2 == 0
  }

  private var isRunning: Bool { hasBegun && !hasEnded && !isCancelled }

  /// Gives the machine one random input.
  mutating func step() {
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<10: begin()
    case 10..<20: receiveHead()
    case 20..<50: receiveChunk()
    case 50..<60: awaitHead()
    case 60..<97: take()
    case 97: end()
    case 98 where Int.random(in: 0..<3, using: &generator) == 0: end()
    case 99 where !cancelsRarely || Int.random(in: 0..<10, using: &generator) == 0: cancel()
    default: receiveChunk()
    }
    if machine.isRunning != isRunning { fault = "isRunning is \(machine.isRunning)" }
  }

  /// Cancels the transfer, and checks that it then holds no waiter and gives no chunk.
  mutating func finish() {
    cancel()
    if !heldWaiters.isEmpty { fault = "the waiters \(heldWaiters) were not returned" }
    take()
  }

  private mutating func record(_ input: String, _ action: Action) -> Action {
    log.append("\(input): \(action)")
    kinds.insert(action.kind)
    return action
  }

  private mutating func makeWaiter() -> Int {
    waiterCount += 1
    heldWaiters.insert(waiterCount)
    return waiterCount
  }

  private mutating func recordReturn(of waiter: Int) {
    if heldWaiters.remove(waiter) == nil { fault = "the waiter \(waiter) was returned twice, or never passed in" }
    if waiter == chunkWaiter { chunkWaiter = nil }
  }

  private mutating func recordUnexpected(_ action: Action, after input: String) {
    fault = "unexpected action after \(input): \(action)"
  }

  // MARK: - Network side

  private mutating func begin() {
    guard !hasBegun else { return }
    let action = record("begin", machine.begin())
    if action != (isCancelled ? .skip : .send) { recordUnexpected(action, after: "begin") }
    hasBegun = !isCancelled
  }

  private mutating func receiveHead() {
    let action = record("head", machine.receiveHead(200))
    switch action {
    case .resumeHead(let waiter, 200) where isRunning && !hasHead: recordReturn(of: waiter)
    case .keep where isRunning && !hasHead && !hasAwaitedHead: break
    case .ignore where !isRunning || hasHead: return
    default: recordUnexpected(action, after: "head")
    }
    hasHead = true
  }

  private mutating func receiveChunk() {
    guard !(networkObeysPause && isPaused) else { return }
    let chunk = "\(sentCount)"
    sentCount += 1
    let action = record("chunk \(chunk)", machine.receiveChunk(chunk))
    switch action {
    case .resumeChunk(let waiter, let text) where isRunning && waiter == chunkWaiter && given == accepted:
      accepted.append(chunk)
      recordReturn(of: waiter)
      recordGiven(text)
    case .pause where isRunning && chunkWaiter == nil:
      accepted.append(chunk)
      isPaused = true
    case .refuse where !isRunning: break
    default: recordUnexpected(action, after: "chunk")
    }
    if networkObeysPause, accepted.count - given.count > 1 {
      fault = "\(accepted.count - given.count) chunks are pending"
    }
  }

  private mutating func end() {
    let error = Bool.random(using: &generator) ? URLError(.networkConnectionLost) : nil
    let action = record("end", machine.end(error))
    switch action {
    case .failHead(let waiter, let code) where isRunning && !hasHead:
      recordReturn(of: waiter)
      if code != error?.code ?? .badServerResponse { recordUnexpected(action, after: "end") }
    case .endBody(let waiter, let code) where isRunning && code == error?.code: recordReturn(of: waiter)
    case .ignore where !isRunning: return
    case .ignore where heldWaiters.isEmpty: break
    default: recordUnexpected(action, after: "end")
    }
    hasEnded = true
    endCode = error?.code
  }

  // MARK: - Caller side

  private mutating func awaitHead() {
    guard !hasAwaitedHead else { return }
    hasAwaitedHead = true
    let action = record("await head", machine.awaitHead(makeWaiter()))
    switch action {
    case .wait where !isCancelled && !hasEnded && !hasHead: break
    case .resumeHead(let waiter, 200) where !isCancelled && hasHead: recordReturn(of: waiter)
    case .failHead(let waiter, .cancelled) where isCancelled: recordReturn(of: waiter)
    case .failHead(let waiter, endCode ?? .badServerResponse) where !isCancelled && hasEnded && !hasHead:
      recordReturn(of: waiter)
    default: recordUnexpected(action, after: "await head")
    }
  }

  private mutating func take() {
    guard hasHead, hasAwaitedHead, chunkWaiter == nil else { return }
    let waiter = makeWaiter()
    let action = record("take", machine.take(waiter))
    switch action {
    case .wait where isRunning && given == accepted:
      chunkWaiter = waiter
      return
    case .give(let chunk, let resumesNetwork) where !isCancelled:
      recordGiven(chunk)
      if resumesNetwork != (given == accepted) { recordUnexpected(action, after: "take") }
      if resumesNetwork { isPaused = false }
    case .end(.cancelled) where isCancelled: break
    case .end(let code) where hasEnded && !isCancelled && code == endCode && given == accepted: break
    default: recordUnexpected(action, after: "take")
    }
    recordReturn(of: waiter)
  }

  private mutating func recordGiven(_ chunk: String) {
    given.append(chunk)
    if isCancelled { fault = "the chunk \(chunk) was given after the cancellation" }
    if given.count > accepted.count || accepted[given.count - 1] != chunk {
      fault = "the chunk \(chunk) is out of order"
    }
  }

  private mutating func cancel() {
    let action = record("cancel", machine.cancel())
    switch action {
    case .stop(let head, let chunk) where !isCancelled && (isRunning || head != nil || chunk != nil):
      if let head { recordReturn(of: head) }
      if let chunk { recordReturn(of: chunk) }
    case .ignore where !isRunning && heldWaiters.isEmpty: break
    default: recordUnexpected(action, after: "cancel")
    }
    isCancelled = true
    if !heldWaiters.isEmpty { fault = "the waiters \(heldWaiters) were not returned" }
  }
}
