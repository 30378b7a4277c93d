import Foundation
import Multicast
import Testing

@testable import Moments

@Suite(.timeLimit(.minutes(5)))
struct HTTPDelegateQueueTests {
  fileprivate enum Event: Equatable, Sendable {
    case added(Int)
    case ran(Int)
  }

  @Test func `Whoever adds calls waits for them when too many are ahead`() async {
    let queue = HTTPDelegateQueue()
    let limit = HTTPDelegateQueue.maximumCallCount
    let gate = DispatchSemaphore(value: 0)
    let log = Lock<[Event]>([])
    let (events, event) = AsyncStream<Event>.makeStream()

    @Sendable func record(_ recorded: Event) {
      log.withLock { $0.append(recorded) }
      event.yield(recorded)
    }

    Thread.detachNewThread {
      for index in 0...limit {
        queue.addOperation {
          if index == 0 { gate.wait() }
          record(.ran(index))
        }
        record(.added(index))
      }
    }
    for await event in events {
      // The queue is full now; the next call waits behind the first, which waits here.
      if event == .added(limit - 1) { gate.signal() }
      if event == .ran(limit) { break }
    }

    let order = log.withLock(\.self)
    #expect(order.filter { $0.isRun } == (0...limit).map(Event.ran))
    #expect(Array(order.prefix(limit + 1)) == (0..<limit).map(Event.added) + [.ran(0)])
  }
}

extension HTTPDelegateQueueTests.Event {
  fileprivate var isRun: Bool {
    if case .ran = self { true } else { false }
  }
}
