import Multicast
import MulticastTesting
import Testing

@Suite(.timeLimit(.minutes(15))) struct ManualClockTests {
  private let clock = ManualClock()

  /// Starts a task that sleeps for `duration`, and whose value is whether the sleep reached its deadline.
  private func startSleeper(for duration: Duration) -> Task<Bool, Never> {
    Task { [clock] in
      do {
        try await clock.sleep(for: duration)
        return true
      } catch {
        return false
      }
    }
  }

  @Test func `A manual clock stands still until it is advanced`() async {
    #expect(clock.now.offset == .zero)
    clock.advance(by: .seconds(2))
    clock.advance(by: .milliseconds(500))
    #expect(clock.now.offset == .milliseconds(2500))
    #expect(clock.minimumResolution == .zero)
  }

  @Test func `A sleeper wakes when its deadline is reached, and not before`() async {
    let sleeper = startSleeper(for: .seconds(3))
    await clock.sleepers()
    clock.advance(by: .seconds(2))
    #expect(clock.pendingSleeps == [.seconds(1)])
    clock.advance(by: .seconds(1))
    #expect(clock.pendingSleeps == [])
    #expect(await sleeper.value)
  }

  @Test func `Cancelling a task that waits for sleepers ends its wait`() async {
    let executor = ManualTaskExecutor()
    let cancelledBeforeWaiting = Task(executorPreference: executor) { [clock] in await clock.sleepers() }
    cancelledBeforeWaiting.cancel()
    let cancelledWhileWaiting = Task(executorPreference: executor) { [clock] in await clock.sleepers() }
    executor.runUntilIdle()
    cancelledWhileWaiting.cancel()
    executor.runUntilIdle()
    await cancelledBeforeWaiting.value
    await cancelledWhileWaiting.value
    // A new sleeper must not resume either task a second time.
    let sleeper = startSleeper(for: .seconds(1))
    await clock.sleepers()
    clock.advance(by: .seconds(1))
    #expect(await sleeper.value)
  }

  @Test func `Pending sleeps are listed in the order of their deadlines`() async {
    let sleepers = [startSleeper(for: .seconds(3)), startSleeper(for: .seconds(1)), startSleeper(for: .seconds(2))]
    await clock.sleepers(3)
    #expect(clock.pendingSleeps == [.seconds(1), .seconds(2), .seconds(3)])
    clock.advance(by: .seconds(2))
    #expect(clock.pendingSleeps == [.seconds(1)])
    clock.advance(by: .seconds(9))
    for sleeper in sleepers { #expect(await sleeper.value) }
  }

  @Test func `Sleepers that are due together wake in the order of their deadlines`() async {
    let executor = ManualTaskExecutor()
    let wakeOrder = CurrentValueRelay<[Int]>([])
    let tasks = [3, 1, 2].map { seconds in
      Task(executorPreference: executor) { [clock] in
        try await clock.sleep(for: .seconds(seconds))
        wakeOrder.update { $0.append(seconds) }
      }
    }
    executor.runUntilIdle()
    #expect(clock.pendingSleeps.count == 3)
    clock.advance(by: .seconds(3))
    executor.runUntilIdle()
    #expect(wakeOrder.value == [1, 2, 3])
    withExtendedLifetime(tasks) {}
  }

  @Test func `A cancelled sleeper is removed at once`() async {
    let sleeper = startSleeper(for: .seconds(3))
    await clock.sleepers()
    sleeper.cancel()
    #expect(await sleeper.value == false)
    #expect(clock.pendingSleeps == [])
  }

  @Test func `A task that is already cancelled doesn't sleep`() async {
    // The gate stays closed, so only the cancellation ends the wait for it.
    let gate = Gate()
    let task = Task { [clock] in
      await gate.pass()
      try await clock.sleep(for: .seconds(1))
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `Sleeping until a deadline that is already reached returns at once`() async throws {
    clock.advance(by: .seconds(5))
    try await clock.sleep(until: ManualClock.Instant().advanced(by: .seconds(5)))
    try await clock.sleep(for: .zero)
    #expect(clock.pendingSleeps == [])
  }

  @Test func `A sleeper that isn't cancelled wakes even if others start, wake and are cancelled concurrently`() async {
    let sleepers = (0..<500).map { number in startSleeper(for: .seconds(number % 7)) }
    for (number, sleeper) in sleepers.enumerated() where number % 3 == 0 { sleeper.cancel() }
    for _ in 0..<7 { clock.advance(by: .seconds(1)) }
    // A task that begins to sleep only after these advances needs a further advance.
    let advancingTask = Task { [clock] in
      while !Task.isCancelled {
        clock.advance(by: .seconds(7))
        await Task.yield()
      }
    }
    for (number, sleeper) in sleepers.enumerated() where number % 3 != 0 { #expect(await sleeper.value) }
    advancingTask.cancel()
  }

  @Test func `Random number generators with equal seeds return equal numbers`() {
    var generator = SplitMix64(seed: 1)
    var equalGenerator = SplitMix64(seed: 1)
    var otherGenerator = SplitMix64(seed: 2)
    let numbers = (0..<10).map { _ in generator.next() }
    #expect(numbers == (0..<10).map { _ in equalGenerator.next() })
    #expect(numbers != (0..<10).map { _ in otherGenerator.next() })
  }
}
