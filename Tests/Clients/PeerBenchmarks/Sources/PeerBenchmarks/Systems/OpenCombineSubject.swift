internal import OpenCombine

/// OpenCombine's `PassthroughSubject`, whose subscribers read `values` of an unbounded `buffer`.
///
/// Without the buffer, `values` would lose the elements that are sent while its subscriber is busy.
struct OpenCombineSubject<Element: Payload>: Broadcast {
  /// A box that makes a subject `Sendable`.
  ///
  /// Unchecked, because `PassthroughSubject` guards all its state with locks of its own, but predates `Sendable`.
  private struct Shareable: @unchecked Sendable {
    let subject = PassthroughSubject<Element, Never>()
  }

  private let shareable = Shareable()

  static var label: String { "OpenCombine" }

  /// Limits a run to 10,000 sends and 1,024,000 deliveries.
  ///
  /// Runs are short, because the buffer removes elements from the front of an array, so the time of a delivery is
  /// proportional to the backlog.
  static func affordable(_ count: Int, subscribers: Int) -> Int {
    min(count, 10_000, 1_024_000 / subscribers)
  }

  func send(_ element: Element) {
    shareable.subject.send(element)
  }

  func finish() {
    shareable.subject.send(completion: .finished)
  }

  func subscribe() -> AsyncPublisher<Publishers.Buffer<PassthroughSubject<Element, Never>>> {
    shareable.subject.buffer(size: .max, prefetch: .byRequest, whenFull: .dropOldest).values
  }
}
