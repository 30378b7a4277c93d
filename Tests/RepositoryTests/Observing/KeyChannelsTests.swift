import Multicast
import Testing

@testable import Repository

@Suite(.timeLimit(.minutes(15))) struct KeyChannelsTests {
  /// An element that calls a closure when it is released.
  private final class Element: Sendable {
    let number: Int
    private let onRelease: @Sendable () -> Void

    init(_ number: Int, onRelease: @escaping @Sendable () -> Void = {}) {
      (self.number, self.onRelease) = (number, onRelease)
    }

    deinit { onRelease() }
  }

  @Test func `A channel that is opened while a new current element is set receives the element once`() async {
    let channels = KeyChannels<String, Element>()
    let subscription = Setting<MulticastSubscription<Element, Never>?>(nil)
    // The release of the old element opens the channel between the two steps that set the new one.
    channels.setCurrent(
      Element(1) { subscription.value = channels.stream(of: "a", onOpen: {}, onClose: {}).subscribe() }, of: "a")
    channels.setCurrent(Element(2), of: "a")
    channels.finish()
    var numbers: [Int] = []
    if let subscription = subscription.value { for await element in subscription { numbers.append(element.number) } }
    #expect(numbers == [2])
  }
}
