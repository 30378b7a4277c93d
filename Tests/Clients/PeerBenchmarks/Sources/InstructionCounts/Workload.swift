internal import Multicast

/// The workloads whose instructions are counted, each of which runs on one thread.
///
/// A workload returns its objects, and the process exits without releasing them. The count therefore includes only the
/// releases that the workload itself performs.
struct Workload<Element: CountedElement> {
  private let executor = SerialTaskExecutor()
  private let element = Element.sample
  private let iterations: Int

  init(iterations: Int) {
    self.iterations = iterations
  }

  /// Sends to subscribers that never read.
  func send(laggingSubscribers: Int) -> Outcome {
    let channel = MulticastChannel<Element, Never>(buffering: .unbounded)
    let iterators = (0..<laggingSubscribers).map { _ in channel.stream.makeAsyncIterator() }
    for _ in 0..<iterations { channel.send(element) }
    return Outcome(isAsExpected: channel.subscriberCount == laggingSubscribers, keptAlive: (channel, iterators))
  }

  /// Sends values to a current-value channel without subscribers.
  func replace() -> Outcome {
    let channel = CurrentValueChannel<Element, Never>(element)
    for _ in 0..<iterations { channel.send(element) }
    return Outcome(isAsExpected: channel.value.number == element.number, keptAlive: channel)
  }

  /// Sends to subscribers that read all elements afterwards.
  func deliver(subscribers: Int) -> Outcome {
    let channel = MulticastChannel<Element, Never>(buffering: .unbounded)
    let tallies = (0..<subscribers).map { _ in startReading(channel.stream.subscribe()) }
    for _ in 0..<iterations { channel.send(element) }
    executor.runUntilIdle()
    return outcome(tallies, channel)
  }

  /// Repeatedly sends one element to suspended subscribers, which take it and suspend again.
  func wake(subscribers: Int) -> Outcome {
    let channel = MulticastChannel<Element, Never>(buffering: .unbounded)
    let tallies = (0..<subscribers).map { _ in startReading(channel.stream.subscribe()) }
    executor.runUntilIdle()
    for _ in 0..<iterations {
      channel.send(element)
      executor.runUntilIdle()
    }
    return outcome(tallies, channel)
  }

  /// Repeatedly suspends and resumes a task with a bare continuation, to measure the runtime's share of a wake-up.
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

  /// Repeatedly subscribes, reads the replayed element, and releases the iterator.
  func subscribe() -> Outcome {
    let channel = MulticastChannel<Element, Never>(replay: 1, buffering: .unbounded)
    let tally = RunningTally()
    channel.send(element)
    Task(executorPreference: executor) { [iterations] in
      for _ in 0..<iterations {
        var iterator = channel.stream.makeAsyncIterator()
        if let element = await iterator.next(isolation: nil) { tally.add(element.number) }
      }
    }
    executor.runUntilIdle()
    return outcome([tally], channel)
  }

  private func startReading(_ subscription: MulticastSubscription<Element, Never>) -> RunningTally {
    let tally = RunningTally()
    Task(executorPreference: executor) {
      for await element in subscription { tally.add(element.number) }
    }
    return tally
  }

  private func outcome(_ tallies: [RunningTally], _ keptAlive: any Sendable) -> Outcome {
    let expectedSum = iterations * element.number
    return Outcome(isAsExpected: tallies.allSatisfy { $0.sum == expectedSum }, keptAlive: keptAlive)
  }
}

/// The result of a workload: whether its elements and subscribers are the expected ones, and the objects to keep alive
/// until the process exits.
struct Outcome {
  let isAsExpected: Bool
  let keptAlive: Any
}
