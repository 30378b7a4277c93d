internal import Multicast

/// This project's channel.
struct MulticastSystem<Element: Payload>: ReplayingBroadcast {
  private let channel: MulticastChannel<Element, Never>

  init(replay: Int = 0, buffering: BufferingPolicy<Never> = .unbounded) {
    channel = MulticastChannel(replay: replay, buffering: buffering)
  }

  static var label: String { "Multicast" }

  var subscriberCount: Int { channel.subscriberCount }

  func send(_ element: Element) {
    channel.send(element)
  }

  func finish() {
    channel.finish()
  }

  func subscribe() -> MulticastStream<Element, Never> {
    channel.stream
  }
}

/// This project's channel, read through subscriptions, which count the elements that they drop.
struct BoundedMulticastSystem<Element: Payload, Failure: Error>: BoundedBroadcast {
  private let channel: MulticastChannel<Element, Failure>

  let policy: String

  init(_ buffering: BufferingPolicy<Failure>) {
    channel = MulticastChannel(buffering: buffering)
    policy = buffering.description
  }

  static var label: String { "Multicast" }

  func send(_ element: Element) {
    channel.send(element)
  }

  func finish() {
    channel.finish()
  }

  func subscribe() -> MulticastSubscription<Element, Failure> {
    channel.stream.subscribe()
  }

  func droppedCount(_ subscribers: [MulticastSubscription<Element, Failure>]) -> Int {
    subscribers.reduce(0) { $0 + $1.droppedCount }
  }
}
