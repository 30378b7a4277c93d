import Multicast
import MulticastTesting
import Testing

/// Three worked examples of Rx's subjects, each with an early and a late subscriber.
@Suite struct WorkedExampleTests {
  let executor = ManualTaskExecutor()

  @Test func `Without a replay, a subscriber receives only elements sent after it subscribed`() {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    channel.send(1)
    let early = startReader(channel.stream)
    #expect(channel.send(2) == .sent)
    executor.runUntilIdle()
    let late = startReader(channel.stream)
    channel.send(3)
    channel.finish()
    #expect(channel.send(4) == .terminated)
    executor.runUntilIdle()
    #expect(early.events == [.element(2), .element(3), .finished])
    #expect(late.events == [.element(3), .finished])
  }

  @Test func `With a current value, a subscriber receives that value, then every later one`() {
    let channel = CurrentValueChannel<Int, Never>(1, buffering: .unbounded)
    let early = startReader(channel.stream)
    channel.send(2)
    executor.runUntilIdle()
    let late = startReader(channel.stream)
    channel.send(3)
    channel.finish()
    #expect(channel.send(4) == .terminated)
    executor.runUntilIdle()
    #expect(early.events == [.element(1), .element(2), .element(3), .finished])
    #expect(late.events == [.element(2), .element(3), .finished])
    #expect(channel.value == 3)
  }

  @Test func `With a replay of two, a subscriber receives the newest two elements, then every later one`() {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: .unbounded)
    channel.send(1)
    channel.send(2)
    let early = startReader(channel.stream)
    channel.send(3)
    executor.runUntilIdle()
    let late = startReader(channel.stream)
    channel.send(4)
    channel.finish()
    #expect(channel.send(5) == .terminated)
    executor.runUntilIdle()
    #expect(early.events == [.element(1), .element(2), .element(3), .element(4), .finished])
    #expect(late.events == [.element(2), .element(3), .element(4), .finished])
  }

  /// Subscribes before this call returns, and starts a task that reads the subscription.
  private func startReader(_ stream: MulticastStream<Int, Never>) -> Reader<Int> {
    Reader(stream.subscribe(), on: executor)
  }
}
