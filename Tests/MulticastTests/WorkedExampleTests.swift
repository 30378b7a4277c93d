import Multicast
import MulticastTesting
import Testing

/// The three examples of the lecture on subjects, step by step: two observers, drained in order after each step.
@Suite struct WorkedExampleTests {
  let executor = ManualTaskExecutor()

  @Test func `Publishing: an observer sees only what is sent after it subscribed`() {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    channel.send(1)
    let first = observe(channel.stream)
    #expect(channel.send(2) == .sent)
    executor.runUntilIdle()
    let second = observe(channel.stream)
    channel.send(3)
    channel.finish()
    #expect(channel.send(4) == .terminated)
    executor.runUntilIdle()
    #expect(first.events == [.element(2), .element(3), .finished])
    #expect(second.events == [.element(3), .finished])
  }

  @Test func `Current value: an observer sees the value there is, then every later one`() {
    let channel = CurrentValueChannel<Int, Never>(1, buffering: .unbounded)
    let first = observe(channel.stream)
    channel.send(2)
    executor.runUntilIdle()
    let second = observe(channel.stream)
    channel.send(3)
    channel.finish()
    #expect(channel.send(4) == .terminated)
    executor.runUntilIdle()
    #expect(first.events == [.element(1), .element(2), .element(3), .finished])
    #expect(second.events == [.element(2), .element(3), .finished])
    #expect(channel.value == 3)
  }

  @Test func `Replay of two: an observer sees the newest two, then every later one`() {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: .unbounded)
    channel.send(1)
    channel.send(2)
    let first = observe(channel.stream)
    channel.send(3)
    executor.runUntilIdle()
    let second = observe(channel.stream)
    channel.send(4)
    channel.finish()
    #expect(channel.send(5) == .terminated)
    executor.runUntilIdle()
    #expect(first.events == [.element(1), .element(2), .element(3), .element(4), .finished])
    #expect(second.events == [.element(2), .element(3), .element(4), .finished])
  }

  /// Subscribes at once; the task then reads that subscription.
  private func observe(_ stream: MulticastStream<Int, Never>) -> Reader<Int> {
    Reader(stream.subscribe(), on: executor)
  }
}
