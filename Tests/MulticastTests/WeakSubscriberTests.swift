import Multicast
import Testing

@MainActor @Suite(.timeLimit(.minutes(15))) struct WeakSubscriberTests {
  /// A view model that receives the elements of a sequence.
  @MainActor
  private final class Screen {
    private let receivedCount: CurrentValueRelay<Int>
    private(set) var received: [Int] = []

    init(_ receivedCount: CurrentValueRelay<Int> = CurrentValueRelay(0)) {
      self.receivedCount = receivedCount
    }

    consuming func run(_ elements: MulticastSubscription<Int, Never>) async {
      await WeakSubscriber(consume self).receive(elements) { screen, element in
        screen.received.append(element)
        screen.receivedCount.send(screen.received.count)
      }
    }
  }

  @Test func `Every element is received in order, until the sequence ends`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let screen = Screen()
    let elements = channel.stream.subscribe()
    for element in 1...3 { channel.send(element) }
    channel.finish()
    await screen.run(elements)
    #expect(screen.received == [1, 2, 3])
  }

  @Test func `The object can be released while the next element is awaited, and that element ends the loop`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let elements = channel.stream.subscribe()
    let receivedCount = CurrentValueRelay(0)
    var screen: Screen? = Screen(receivedCount)
    weak let weakScreen = screen
    let running = Task { [weak screen] in await screen?.run(elements) }
    channel.send(1)
    for await count in receivedCount.stream where count == 1 { break }
    screen = nil
    #expect(weakScreen == nil)
    channel.send(2)
    await running.value
    #expect(receivedCount.value == 1)
  }

  @Test func `An object released before the first element receives nothing`() async {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    channel.send(1)
    var screen: Screen? = Screen()
    let subscriber = WeakSubscriber(screen!)
    screen = nil
    var received: [Int] = []
    await subscriber.receive(channel.stream) { received.append($1) }
    #expect(subscriber.object == nil)
    #expect(received == [])
  }

  @Test func `A current subscription is cancelled by the next one and by the release of its holder`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let keptHolder = CurrentSubscription<Int>()
    var releasedHolder: CurrentSubscription<Int>? = CurrentSubscription()
    let first = keptHolder.replace(with: channel.stream.subscribe())
    let second = keptHolder.replace(with: channel.stream.subscribe())
    let orphaned = releasedHolder!.replace(with: channel.stream.subscribe())
    releasedHolder = nil
    channel.send(1)
    channel.finish()
    let screens = (first: Screen(), orphaned: Screen(), second: Screen())
    await screens.first.run(first)
    await screens.orphaned.run(orphaned)
    await screens.second.run(second)
    #expect(screens.first.received == [])
    #expect(screens.orphaned.received == [])
    #expect(screens.second.received == [1])
    extendLifetime(keptHolder)
  }
}
