import Multicast

/// The code of `ChoosingAChannel.md`, copied unchanged so that the compiler checks it.
enum ChoosingAChannelExamples {
  enum LoadState: Sendable {
    case loading
    case loaded
  }

  static func events() {
    let openedMessages = MulticastRelay<String>(buffering: .unbounded)
    openedMessages.send("message-1")
  }

  static func state(print: Print) {
    let state = CurrentValueChannel<LoadState, Never>(.loading)
    state.send(.loaded)
    print(state.value)  // loaded
  }

  static func stateWithoutFirstValue(print: Print) {
    let inboxes = MulticastChannel<[String], Never>(replay: 1, buffering: .latest)
    print(inboxes.latest ?? [])  // []
    inboxes.send(["message-1"])
    print(inboxes.latest ?? [])  // ["message-1"]
  }

  static func update(print: Print) {
    let cart = CurrentValueRelay<[String]>([])
    let count = cart.update { items in
      items.append("tea")
      return items.count
    }
    print(count)  // 1
  }

  actor Votes {
    private var count = 0
    private let counts = CurrentValueRelay(0)
    nonisolated var stream: MulticastStream<Int, Never> { counts.stream }

    func vote() {
      count += 1
      counts.send(count)
    }
  }

  /// Shares messages, each of which is a stock quote, between a list and a chart.
  static func sharedSequence(
    _ messages: AsyncStream<String>, showList: @Sendable (MulticastSequence<AsyncStream<String>>) async -> Void,
    showChart: @Sendable (MulticastSequence<AsyncStream<String>>) async -> Void
  ) async {
    let quotes = messages.multicast(replay: 1, buffering: .latest)
    async let list: Void = showList(quotes)
    async let chart: Void = showChart(quotes)
    _ = await (list, chart)
  }
}
