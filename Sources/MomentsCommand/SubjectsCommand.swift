internal import Multicast

/// The command `moments subjects`: runs an example of each of three kinds of channel, and prints a line for each event
/// that a subscriber receives.
struct SubjectsCommand {
  let console: Console

  func run() async -> CommandStatus {
    console.print("PublishSubject")
    await runPublishExample()
    console.print("\nBehaviorSubject")
    await runCurrentValueExample()
    console.print("\nReplaySubject")
    await runReplayExample()
    return .success
  }

  private func runPublishExample() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    channel.send(1)
    var observer1 = subscribeObserver(1, to: channel.stream)
    channel.send(2)
    await observer1.printNext()
    var observer2 = subscribeObserver(2, to: channel.stream)
    channel.send(3)
    await observer1.printNext()
    await observer2.printNext()
    channel.finish()
    await observer1.printNext()
    await observer2.printNext()
    // Does nothing, because the channel has finished. The examples below end in the same way.
    channel.send(4)
  }

  private func runCurrentValueExample() async {
    let channel = CurrentValueChannel<Int, Never>(1)
    var observer1 = subscribeObserver(1, to: channel.stream)
    await observer1.printNext()
    channel.send(2)
    await observer1.printNext()
    var observer2 = subscribeObserver(2, to: channel.stream)
    await observer2.printNext()
    channel.send(3)
    await observer1.printNext()
    await observer2.printNext()
    channel.finish()
    await observer1.printNext()
    await observer2.printNext()
    channel.send(4)
  }

  private func runReplayExample() async {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: .unbounded)
    channel.send(1)
    channel.send(2)
    var observer1 = subscribeObserver(1, to: channel.stream)
    await observer1.printNext(count: 2)
    channel.send(3)
    await observer1.printNext()
    var observer2 = subscribeObserver(2, to: channel.stream)
    await observer2.printNext(count: 2)
    channel.send(4)
    await observer1.printNext()
    await observer2.printNext()
    channel.finish()
    await observer1.printNext()
    await observer2.printNext()
    channel.send(5)
  }

  private func subscribeObserver(_ number: Int, to stream: MulticastStream<Int, Never>) -> Observer {
    Observer(name: "observer\(number)", iterator: stream.makeAsyncIterator(), console: console)
  }

  /// A subscriber that prints its events, in the format of the RxSwift examples that these examples replace.
  private struct Observer {
    let name: String
    var iterator: MulticastStream<Int, Never>.AsyncIterator
    let console: Console

    mutating func printNext(count: Int = 1) async {
      for _ in 0..<count {
        let event = await iterator.next().map { "next(\($0))" } ?? "completed"
        console.print("\(name): \(event)")
      }
    }
  }
}
