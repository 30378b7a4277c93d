import Multicast
import Testing

/// Guarantee C24: sending is synchronous from any isolation, and reading stays on the caller's isolation.
@Suite struct IsolationTests {
  actor CounterActor {
    private let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    private(set) var value = 0
    nonisolated var values: MulticastStream<Int, Never> { channel.stream }

    /// Changes the state and publishes it without a suspension in between.
    func increment() {
      value += 1
      channel.send(value)
      assert(channel.latest == value)
    }

    func finish() { channel.finish() }

    /// Returns the sum of a stream's elements, and checks after each element that the loop still runs on this actor.
    func sum(of stream: MulticastStream<Int, Never>) async -> Int {
      var sum = 0
      for await element in stream {
        assertIsolated()
        sum += element
      }
      return sum
    }
  }

  @Test func `An actor changes its state and publishes it in one step`() async {
    let counter = CounterActor()
    let subscription = counter.values.subscribe()
    await withTaskGroup { group in
      for _ in 0..<100 { group.addTask { await counter.increment() } }
    }
    await counter.finish()
    #expect(await subscription.read(101) == (1...100).map { .element($0) } + [.finished])
  }

  @Test func `A loop on an actor stays on that actor`() async {
    let counter = CounterActor()
    let channel = MulticastChannel<Int, Never>(replay: 3, buffering: .unbounded)
    for element in 1...3 { channel.send(element) }
    channel.finish()
    #expect(await counter.sum(of: channel.stream) == 6)
  }

  @MainActor
  @Test func `A loop on the main actor stays on the main actor`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    let sender = Task.detached {
      for element in 1...100 { channel.send(element) }
      channel.finish()
    }
    var seen: [Int] = []
    for await element in subscription {
      MainActor.assertIsolated()
      seen.append(element)
    }
    #expect(seen == Array(1...100))
    await sender.value
  }

  @Test func `A stream that can't fail needs no try, and a failing stream throws an error of its Failure type`() async {
    let infallibleChannel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    infallibleChannel.finish()
    for await _ in infallibleChannel.stream {}

    let failingChannel = MulticastChannel<Int, Failure>(replay: 1, buffering: .unbounded)
    failingChannel.finish(throwing: .second)
    do {
      for try await _ in failingChannel.stream {}
      Issue.record("The stream didn't throw.")
    } catch {
      // This compiles without a cast, because `error` has the type `Failure`.
      let failure: Failure = error
      #expect(failure == .second)
    }
  }
}
