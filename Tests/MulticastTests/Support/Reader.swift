import Multicast
import Synchronization

/// An event that a subscriber received.
enum Event<Element: Sendable & Equatable>: Sendable, Equatable {
  case element(Element)
  case finished
  case failed(String)

  static func elements(_ elements: Element...) -> [Self] { elements.map { .element($0) } }
}

/// A task that reads a sequence until it terminates, and records the events.
struct Reader<Element: Sendable & Equatable>: Sendable {
  private final class Record: Sendable {
    let events = Lock<[Event<Element>]>([])
  }

  let task: Task<Void, Never>
  private let record: Record

  /// Starts the task on `executor`.
  ///
  /// If the executor is a `ManualTaskExecutor`, the test must run its jobs.
  init<Failure: Error>(
    _ sequence: some AsyncSequence<Element, Failure> & Sendable,
    on executor: any TaskExecutor,
    onElement: @escaping @Sendable (Element) -> Void = { _ in }
  ) {
    let record = Record()
    self.record = record
    task = Task(executorPreference: executor) {
      do {
        for try await element in sequence {
          record.events.withLock { $0.append(.element(element)) }
          onElement(element)
        }
        record.events.withLock { $0.append(.finished) }
      } catch {
        record.events.withLock { $0.append(.failed("\(error)")) }
      }
    }
  }

  var events: [Event<Element>] { record.events.withLock { $0 } }

  /// Removes and returns the recorded events.
  func takeEvents() -> [Event<Element>] {
    record.events.withLock { events in
      defer { events = [] }
      return events
    }
  }
}

extension MulticastSubscription where Element: Equatable {
  /// Calls `next()` `count` times and returns the results.
  ///
  /// For each call, an element or the termination must be available or arrive during the call, because a call without
  /// either never returns.
  func read(_ count: Int) async -> [Event<Element>] {
    var iterator = makeAsyncIterator()
    var events: [Event<Element>] = []
    for _ in 0..<count {
      do {
        let element = try await iterator.next()
        events.append(element.map { .element($0) } ?? .finished)
      } catch {
        events.append(.failed("\(error)"))
      }
    }
    return events
  }
}

enum Failure: Error, Equatable {
  case first
  case second
}

/// An element that runs a closure when it is released.
final class Token: Sendable, Equatable {
  let id: Int
  private let onDeinit: @Sendable (Int) -> Void

  init(_ id: Int, onDeinit: @escaping @Sendable (Int) -> Void = { _ in }) {
    self.id = id
    self.onDeinit = onDeinit
  }

  deinit { onDeinit(id) }

  static func == (left: Token, right: Token) -> Bool { left.id == right.id }
}

/// Records values from any thread, in order.
final class Recorder<Value: Sendable>: Sendable {
  private let storage = Lock<[Value]>([])
  var values: [Value] { storage.withLock { $0 } }
  func record(_ value: Value) { storage.withLock { $0.append(value) } }

  /// Removes and returns the recorded values.
  func takeValues() -> [Value] {
    storage.withLock { values in
      defer { values = [] }
      return values
    }
  }
}

/// A number that any thread may change.
final class Counter: Sendable {
  private let storage: Atomic<Int>
  init(_ value: Int = 0) { storage = Atomic(value) }
  var value: Int { storage.load(ordering: .acquiring) }
  func add(_ amount: Int) { storage.add(amount, ordering: .acquiringAndReleasing) }
}
