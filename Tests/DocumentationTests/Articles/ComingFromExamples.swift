import Multicast

/// The code of `ComingFrom.md`, copied unchanged so that the compiler checks it.
enum ComingFromExamples {
  static func publishSubject(print: Print) async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    channel.send(1)
    let observer1 = channel.stream.subscribe()
    channel.send(2)
    let observer2 = channel.stream.subscribe()
    channel.send(3)
    channel.finish()
    channel.send(4)

    for await element in observer1 { print("observer1: \(element)") }  // 2, 3
    for await element in observer2 { print("observer2: \(element)") }  // 3
  }

  static func behaviorSubject(print: Print) async {
    let channel = CurrentValueChannel<Int, Never>(1, buffering: .unbounded)
    let observer1 = channel.stream.subscribe()
    channel.send(2)
    let observer2 = channel.stream.subscribe()
    channel.send(3)
    channel.finish()
    channel.send(4)

    for await element in observer1 { print("observer1: \(element)") }  // 1, 2, 3
    for await element in observer2 { print("observer2: \(element)") }  // 2, 3
  }

  static func replaySubject(print: Print) async {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: .unbounded)
    channel.send(1)
    channel.send(2)
    let observer1 = channel.stream.subscribe()
    channel.send(3)
    let observer2 = channel.stream.subscribe()
    channel.send(4)
    channel.finish()
    channel.send(5)

    for await element in observer1 { print("observer1: \(element)") }  // 1, 2, 3, 4
    for await element in observer2 { print("observer2: \(element)") }  // 2, 3, 4
  }

  @MainActor
  final class InboxScreen {
    private(set) var titles: [String] = []
    private(set) var reading: Task<Void, Never>?

    func start(reading messages: MulticastStream<String, Never>) {
      let subscription = messages.subscribe()
      reading = Task { [weak self] in
        for await title in subscription { self?.titles.append(title) }
      }
    }

    deinit {
      reading?.cancel()
    }
  }

  static func combine(print: Print) async {
    let channel = CurrentValueChannel<Int, Never>(0, buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    channel.update { $0 += 1 }
    channel.finish()
    for await value in subscription { print("value: \(value)") }  // 0, 1
  }

  static func kotlin(print: Print) async {
    let state = CurrentValueRelay(0)
    state.update { $0 += 1 }
    for await value in state.stream {
      print("value: \(value)")  // 1
      if value == 1 { break }
    }
  }
}
