internal import Multicast

/// What is repeated and counted, all of it on one thread.
///
/// What a workload made is still alive when it returns it: the process exits without releasing it, so that only what
/// the workload itself releases is counted.
struct Workload<Element: CountedElement> {
  private let executor = SerialTaskExecutor()
  private let element = Element.sample
  private let iterations: Int

  init(iterations: Int) {
    self.iterations = iterations
  }

  /// Sends to readers who never read.
  func send(lagging: Int) -> Outcome {
    let channel = MulticastChannel<Element, Never>(buffering: .unbounded)
    let readers = (0..<lagging).map { _ in channel.stream.makeAsyncIterator() }
    for _ in 0..<iterations { channel.send(element) }
    return Outcome(isComplete: channel.subscriberCount == lagging, alive: (channel, readers))
  }

  /// Sends a value after the other to a channel that keeps the newest, and that nobody reads.
  func replace() -> Outcome {
    let channel = CurrentValueChannel<Element, Never>(element)
    for _ in 0..<iterations { channel.send(element) }
    return Outcome(isComplete: channel.value.number == element.number, alive: channel)
  }

  /// Sends to readers who read everything afterwards.
  func deliver(readers: Int) -> Outcome {
    let channel = MulticastChannel<Element, Never>(buffering: .unbounded)
    let tallies = (0..<readers).map { _ in read(channel.stream.subscribe()) }
    for _ in 0..<iterations { channel.send(element) }
    executor.runUntilIdle()
    return outcome(tallies, channel)
  }

  /// Sends one element to readers who all wait for it, and lets them take it and wait again.
  func wake(readers: Int) -> Outcome {
    let channel = MulticastChannel<Element, Never>(buffering: .unbounded)
    let tallies = (0..<readers).map { _ in read(channel.stream.subscribe()) }
    executor.runUntilIdle()
    for _ in 0..<iterations {
      channel.send(element)
      executor.runUntilIdle()
    }
    return outcome(tallies, channel)
  }

  /// The same with bare continuations: what the runtime itself needs to suspend a task and to resume it.
  func wakeBareContinuation() -> Outcome {
    let slot = ContinuationSlot<Element>()
    let tally = RunningTally()
    Task(executorPreference: executor) {
      while true { tally.add(await slot.take().number) }
    }
    executor.runUntilIdle()
    for _ in 0..<iterations {
      slot.put(element)
      executor.runUntilIdle()
    }
    return outcome([tally], slot)
  }

  /// Subscribes, reads the replayed element and drops the iterator.
  func subscribe() -> Outcome {
    let channel = MulticastChannel<Element, Never>(replay: 1, buffering: .unbounded)
    let tally = RunningTally()
    channel.send(element)
    Task(executorPreference: executor) { [iterations] in
      for _ in 0..<iterations {
        var reader = channel.stream.makeAsyncIterator()
        if let element = await reader.next(isolation: nil) { tally.add(element.number) }
      }
    }
    executor.runUntilIdle()
    return outcome([tally], channel)
  }

  private func read(_ subscription: MulticastSubscription<Element, Never>) -> RunningTally {
    let tally = RunningTally()
    Task(executorPreference: executor) {
      for await element in subscription { tally.add(element.number) }
    }
    return tally
  }

  private func outcome(_ tallies: [RunningTally], _ alive: any Sendable) -> Outcome {
    let expected = iterations * element.number
    return Outcome(isComplete: tallies.allSatisfy { $0.sum == expected }, alive: alive)
  }
}

/// Whether every reader received everything, and what must not be released before the process exits.
struct Outcome {
  let isComplete: Bool
  let alive: Any
}
