internal import Multicast

/// The command `moments subjects`: runs an example of each of three kinds of channel, and prints a line for each event
/// that a subscriber receives.
struct SubjectsCommand {
  let console: Console

  func run() async -> CommandStatus {
    console.print("PublishSubject")
    await publish()
    console.print("\nBehaviorSubject")
    await currentValue()
    console.print("\nReplaySubject")
    await replay()
    return .success
  }

  private func publish() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    channel.send(1)
    var observer1 = observer(1, of: channel.stream)
    channel.send(2)
    await observer1.observe()
    var observer2 = observer(2, of: channel.stream)
    channel.send(3)
    await observer1.observe()
    await observer2.observe()
    channel.finish()
    await observer1.observe()
    await observer2.observe()
    channel.send(4)
  }

  private func currentValue() async {
    let channel = CurrentValueChannel<Int, Never>(1)
    var observer1 = observer(1, of: channel.stream)
    await observer1.observe()
    channel.send(2)
    await observer1.observe()
    var observer2 = observer(2, of: channel.stream)
    await observer2.observe()
    channel.send(3)
    await observer1.observe()
    await observer2.observe()
    channel.finish()
    await observer1.observe()
    await observer2.observe()
    channel.send(4)
  }

  private func replay() async {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: .unbounded)
    channel.send(1)
    channel.send(2)
    var observer1 = observer(1, of: channel.stream)
    await observer1.observe(2)
    channel.send(3)
    await observer1.observe()
    var observer2 = observer(2, of: channel.stream)
    await observer2.observe(2)
    channel.send(4)
    await observer1.observe()
    await observer2.observe()
    channel.finish()
    await observer1.observe()
    await observer2.observe()
    channel.send(5)
  }

  private func observer(_ number: Int, of stream: MulticastStream<Int, Never>) -> Observer {
    Observer(name: "observer\(number)", iterator: stream.makeAsyncIterator(), console: console)
  }

  /// A subscriber that prints its events, in the format of the RxSwift examples that these examples replace.
  private struct Observer {
    let name: String
    var iterator: MulticastStream<Int, Never>.AsyncIterator
    let console: Console

    mutating func observe(_ count: Int = 1) async {
      for _ in 0..<count {
        let event = await iterator.next().map { "next(\($0))" } ?? "completed"
        console.print("\(name): \(event)")
      }
    }
  }
}
