import Multicast
import MulticastTesting
import Testing

@Suite struct CurrentValueTests {
  let executor = ManualTaskExecutor()

  @Test func `The value of a current-value channel is the initial value, then the last value sent`() {
    let channel = CurrentValueChannel<Int, Never>(1)
    #expect(channel.value == 1)
    channel.send(2)
    #expect(channel.value == 2)
  }

  @Test func `update changes and publishes the value, and returns its body's result`() async {
    let channel = CurrentValueChannel<[Int], Never>([1], buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    let count = channel.update { value in
      value.append(2)
      return value.count
    }
    #expect(count == 2)
    #expect(channel.value == [1, 2])
    #expect(await subscription.read(2) == [.element([1]), .element([1, 2])])
  }

  @Test func `An update that throws publishes nothing`() async {
    let channel = CurrentValueChannel<Int, Never>(1, buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    #expect(throws: Failure.first) {
      try channel.update { (value: inout Int) throws(Failure) in
        value = 2
        throw .first
      }
    }
    #expect(channel.value == 1)
    channel.finish()
    #expect(await subscription.read(2) == [.element(1), .finished])
  }

  @Test func `update runs its body again when another value was sent in the meantime`() async {
    let channel = CurrentValueChannel<Int, Never>(0, buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    let bodyInputs = Recorder<Int>()
    channel.update { value in
      bodyInputs.record(value)
      if value == 0 { channel.send(10) }
      value += 1
    }
    #expect(bodyInputs.values == [0, 10])
    #expect(channel.value == 11)
    #expect(await subscription.read(3) == Event.elements(0, 10, 11))
  }

  @Test func `Concurrent updates are all applied`() async {
    let channel = CurrentValueRelay(0)
    await withTaskGroup { group in
      for _ in 0..<4 { group.addTask { for _ in 0..<1_000 { channel.update { $0 += 1 } } } }
    }
    #expect(channel.value == 4_000)
  }

  @Test func `An update after termination runs its body and discards the change`() {
    let channel = CurrentValueChannel<Int, Never>(1)
    channel.finish()
    let result = channel.update { value in
      value += 1
      return value
    }
    #expect(result == 2)
    #expect(channel.value == 1)
  }

  @Test func `A subscriber that keeps up with a current-value relay receives each value`() {
    let relay = CurrentValueRelay("idle")
    let reader = Reader(relay.stream, on: executor)
    executor.runUntilIdle()
    relay.send("loading")
    executor.runUntilIdle()
    relay.update { $0 += "…" }
    executor.runUntilIdle()
    #expect(reader.events == Event.elements("idle", "loading", "loading…"))
    #expect(relay.subscriberCount == 1)
    reader.task.cancel()
    #expect(relay.subscriberCount == 0)
    executor.runUntilIdle()
  }
}
