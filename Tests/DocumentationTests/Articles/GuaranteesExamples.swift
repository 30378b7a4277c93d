import Multicast

/// The code of `Guarantees.md`, copied unchanged so that the compiler checks it.
enum GuaranteesExamples {
  static func subscription(print: Print) async {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    channel.send(1)
    let subscription = channel.stream.subscribe()
    channel.send(2)
    channel.finish()
    for await element in subscription { print(element) }  // 1, 2
  }

  static func lateSubscriber(print: Print) async {
    let state = CurrentValueChannel<String, Never>("loading")
    state.send("loaded")
    state.finish()
    for await late in state.stream { print(late) }  // loaded
  }
}
