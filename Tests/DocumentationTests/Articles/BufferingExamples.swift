import Multicast

/// The code of `Buffering.md`, copied unchanged so that the compiler checks it.
enum BufferingExamples {
  static func ownPolicy(print: Print) async {
    let readings = MulticastChannel<Int, Never>(buffering: .latest)
    let display = readings.stream.subscribe()
    let record = readings.stream.buffering(.unbounded).subscribe()
    for reading in 20...22 { readings.send(reading) }
    readings.finish()

    for await reading in display { print("display: \(reading)") }  // 22
    for await reading in record { print("record: \(reading)") }  // 20, 21, 22
  }

  static func policies(print: Print) async {
    func received(_ policy: BufferingPolicy<Never>) async -> [Int] {
      let channel = MulticastChannel<Int, Never>(buffering: policy)
      let subscription = channel.stream.subscribe()
      for element in 1...5 { channel.send(element) }
      channel.finish()
      var elements: [Int] = []
      for await element in subscription { elements.append(element) }
      return elements
    }

    print(await received(.unbounded))  // [1, 2, 3, 4, 5]
    print(await received(.latest))  // [5]
    print(await received(.dropOldest(3)))  // [3, 4, 5]
    print(await received(.dropNewest(3)))  // [1, 2, 3]
    print(await received(.replaceNewest(3)))  // [1, 2, 5]
  }

  static func failureOnOverflow(print: Print) async {
    let channel = MulticastChannel<Int, BufferOverflow>(buffering: .error(3))
    let subscription = channel.stream.subscribe()
    for element in 1...5 { channel.send(element) }

    do {
      for try await element in subscription { print(element) }  // 1, 2, 3
    } catch {
      print(error.capacity)  // 3
    }
    print(subscription.droppedCount)  // 1
  }

  static func droppedCount(print: Print) async {
    let channel = MulticastChannel<Int, Never>(buffering: .dropOldest(3))
    let subscription = channel.stream.subscribe()
    for element in 1...5 { channel.send(element) }
    print(subscription.droppedCount)  // 2

    var iterator = subscription.makeAsyncIterator()
    print(await iterator.next() ?? 0)  // 3
    channel.send(6)
    print(subscription.droppedCount)  // 2
    channel.send(7)
    print(subscription.droppedCount)  // 3

    subscription.cancel()
    print(subscription.droppedCount)  // 6
  }

  static func capacityAndReplay(print: Print) async {
    let channel = MulticastChannel<Int, Never>(replay: 3, buffering: .latest)
    for element in 1...5 { channel.send(element) }
    let subscription = channel.stream.subscribe()
    channel.send(6)
    channel.finish()
    for await element in subscription { print(element) }  // 4, 5, 6
  }
}
