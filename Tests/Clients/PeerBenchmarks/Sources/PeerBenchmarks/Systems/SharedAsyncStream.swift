internal import AsyncAlgorithms

/// `share(bufferingPolicy: .unbounded)` of swift-async-algorithms over one source `AsyncStream`.
struct SharedAsyncStream<Element: Payload>: Broadcast {
  private let sourceContinuation: AsyncStream<Element>.Continuation
  private let shared: Sharing<Element>.Shared

  init() {
    let (stream, continuation) = AsyncStream.makeStream(of: Element.self)
    sourceContinuation = continuation
    shared = Sharing.share(stream)
  }

  static var label: String { "share(.unbounded)" }

  /// Runs are shorter for more subscribers, because the time of a run grows with the square of the number of
  /// subscribers.
  static func affordable(_ count: Int, subscribers: Int) -> Int {
    switch subscribers {
    case ..<64: count / 2
    case ..<512: count / 4
    default: count / 20
    }
  }

  func send(_ element: Element) {
    sourceContinuation.yield(element)
  }

  func finish() {
    sourceContinuation.finish()
  }

  func subscribe() -> Sharing<Element>.Shared {
    shared
  }
}

/// A protocol whose associated type names the opaque type of a shared stream.
protocol SharingStreams {
  associatedtype Element: Payload
  associatedtype Shared: AsyncSequence<Element, Never>, Sendable

  static func share(_ stream: AsyncStream<Element>) -> Shared
}

enum Sharing<Element: Payload>: SharingStreams {
  static func share(_ stream: AsyncStream<Element>) -> some AsyncSequence<Element, Never> & Sendable {
    stream.share(bufferingPolicy: .unbounded)
  }
}
