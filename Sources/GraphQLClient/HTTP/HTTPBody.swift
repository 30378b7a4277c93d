public import Foundation

/// The body of a response, as a sequence of chunks of bytes.
///
/// ## Behavior
///
/// - **Single iteration**: Iterate a body only once, unless it was created from `Data`.
/// - **Backpressure**: A transport reads at most one chunk ahead of the iteration. ``URLSessionTransport`` may read
///   more, because a `URLSession` pauses late, or on Linux not at all.
/// - **Failure**: The iteration throws `URLError` if the exchange fails before the end of the body, for example
///   because the connection is lost.
/// - **Cancellation**: When the iterating task is cancelled, `next()` throws `URLError(.cancelled)` and the exchange
///   ends. A body that is created from `Data` ignores cancellation.
public struct HTTPBody: AsyncSequence, Sendable {
  private let chunks: any AsyncSequence<Data, URLError> & Sendable

  /// Creates a body from a sequence of chunks that throws only `URLError`.
  public init(_ chunks: some AsyncSequence<Data, URLError> & Sendable) {
    self.chunks = chunks
  }

  /// Creates a body from the chunks of another library.
  ///
  /// - Parameters:
  ///   - chunks: The chunks.
  ///   - translate: A closure that converts an error of that library to the closest `URLError`.
  public init<Chunks: AsyncSequence & Sendable>(
    _ chunks: Chunks, translatingErrors translate: @escaping @Sendable (any Error) -> URLError
  ) where Chunks.Element == Data {
    self.chunks = TranslatedChunks(base: chunks, translate: translate)
  }

  /// Creates a body of a single chunk, or an empty body if `data` is empty.
  public init(_ data: Data) {
    chunks = SingleChunk(data: data)
  }

  /// Returns an iterator over the body's chunks.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(base: chunks.makeErasedIterator())
  }

  /// An iterator over the chunks of a body.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var base: any AsyncIteratorProtocol<Data, URLError>

    /// Returns the next chunk, or `nil` at the end of the body.
    ///
    /// - Throws: `URLError` if the exchange fails before the end of the body, for example because the connection is
    ///   lost; `URLError(.cancelled)` if the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(URLError) -> Data? {
      try await base.next(isolation: actor)
    }
  }
}

extension AsyncSequence where Element == Data, Failure == URLError {
  fileprivate func makeErasedIterator() -> any AsyncIteratorProtocol<Data, URLError> { makeAsyncIterator() }
}

private struct SingleChunk: AsyncSequence, Sendable {
  let data: Data

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(data: data.isEmpty ? nil : data)
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    var data: Data?

    mutating func next(isolation actor: isolated (any Actor)?) async throws(URLError) -> Data? {
      defer { data = nil }
      return data
    }
  }
}

private struct TranslatedChunks<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element == Data {
  let base: Base
  let translate: @Sendable (any Error) -> URLError

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(base: base.makeAsyncIterator(), translate: translate)
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    var base: Base.AsyncIterator
    let translate: @Sendable (any Error) -> URLError

    mutating func next(isolation actor: isolated (any Actor)?) async throws(URLError) -> Data? {
      do {
        return try await base.next(isolation: actor)
      } catch {
        throw translate(error)
      }
    }
  }
}
