internal import OpenCombine

/// OpenCombine's `PassthroughSubject`, with an unbounded `buffer` for each reader, read by its own `values`.
///
/// Without the buffer `values` would lose what is sent while its reader is busy.
struct OpenCombineSubject<Element: Payload>: Broadcast {
  /// Says of a subject that it may be shared.
  ///
  /// `PassthroughSubject` keeps all its state under locks of its own, but comes from before `Sendable`.
  private struct Shareable: @unchecked Sendable {
    let subject = PassthroughSubject<Element, Never>()
  }

  private let shareable = Shareable()

  static var label: String { "OpenCombine" }

  /// The buffer takes elements from the front of an array, so a delivery takes time for the whole backlog.
  static func affordable(_ count: Int, readers: Int) -> Int {
    min(count, 10_000, 1_024_000 / readers)
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
