import Foundation
import GraphQLClient
import Multicast
import Testing

struct HTTPBodyTests {
  private static let chunks = [Data("a".utf8), Data(), Data("bc".utf8)]

  /// Iterates a body to its end, and returns the chunks and the error, if there is one.
  private static func iterate(_ body: HTTPBody) async -> (chunks: [Data], error: URLError?) {
    var chunks: [Data] = []
    do throws(URLError) {
      for try await chunk in body { chunks.append(chunk) }
      return (chunks, nil)
    } catch {
      return (chunks, error)
    }
  }

  @Test func `A body that is created from data has one chunk`() async throws {
    let body = HTTPBody(Data("abc".utf8))
    var iterator = body.makeAsyncIterator()
    #expect(try await iterator.next() == Data("abc".utf8))
    #expect(try await iterator.next() == nil)
    #expect(try await iterator.next() == nil)
  }

  @Test func `A body that is created from empty data has no chunks`() async throws {
    var iterator = HTTPBody(Data()).makeAsyncIterator()
    #expect(try await iterator.next() == nil)
  }

  @Test func `Chunks are delivered unchanged and in order`() async {
    let (chunks, error) = await Self.iterate(HTTPBody(RecordingChunks(Self.chunks)))
    #expect(chunks == Self.chunks)
    #expect(error == nil)
  }

  @Test func `Chunks before a failure are delivered`() async {
    let body = HTTPBody(RecordingChunks(Self.chunks, failure: URLError(.networkConnectionLost)))
    let (chunks, error) = await Self.iterate(body)
    #expect(chunks == Self.chunks)
    #expect(error == URLError(.networkConnectionLost))
  }

  @Test func `Errors of another library are translated`() async {
    struct LibraryError: Error {
      let code: URLError.Code
    }
    let stream = AsyncThrowingStream<Data, any Error> { continuation in
      for chunk in Self.chunks { continuation.yield(chunk) }
      continuation.finish(throwing: LibraryError(code: .timedOut))
    }
    let body = HTTPBody(stream) { ($0 as? LibraryError).map { URLError($0.code) } ?? URLError(.unknown) }
    let (chunks, error) = await Self.iterate(body)
    #expect(chunks == Self.chunks)
    #expect(error == URLError(.timedOut))
  }

  @Test func `Chunks of another library are delivered unchanged and in order`() async {
    let stream = AsyncStream<Data> { continuation in
      for chunk in Self.chunks { continuation.yield(chunk) }
      continuation.finish()
    }
    let body = HTTPBody(stream) { _ in URLError(.unknown) }
    let (chunks, error) = await Self.iterate(body)
    #expect(chunks == Self.chunks)
    #expect(error == nil)
  }

  @Test func `Iteration inherits the isolation of an actor`() async throws {
    let reader = Reader()
    for translatesErrors in [false, true] {
      let source = RecordingChunks(Self.chunks)
      let body = translatesErrors ? HTTPBody(source) { _ in URLError(.unknown) } : HTTPBody(source)
      #expect(try await reader.read(body) == Self.chunks)
      // Each chunk takes one call of `next`, and so does the end.
      #expect(source.isolations == Array(repeating: ObjectIdentifier(reader), count: Self.chunks.count + 1))
    }
  }

  @Test func `An actor can iterate a body that is created from data`() async throws {
    #expect(try await Reader().read(HTTPBody(Data("abc".utf8))) == [Data("abc".utf8)])
  }
}

private actor Reader {
  func read(_ body: HTTPBody) async throws(URLError) -> [Data] {
    var chunks: [Data] = []
    for try await chunk in body { chunks.append(chunk) }
    return chunks
  }
}

/// A sequence of chunks that throws only `URLError` and records the actors that iterate it.
private struct RecordingChunks: AsyncSequence, Sendable {
  typealias Element = Data
  typealias Failure = URLError

  private let chunks: [Data]
  private let failure: URLError?
  private let record = Record()

  init(_ chunks: [Data], failure: URLError? = nil) {
    self.chunks = chunks
    self.failure = failure
  }

  var isolations: [ObjectIdentifier?] { record.isolations.withLock { $0 } }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(chunks: chunks[...], failure: failure, record: record)
  }

  final class Record: Sendable {
    let isolations = Lock<[ObjectIdentifier?]>([])
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    var chunks: ArraySlice<Data>
    let failure: URLError?
    let record: Record

    mutating func next(isolation actor: isolated (any Actor)?) async throws(URLError) -> Data? {
      record.isolations.withLock { $0.append(actor.map(ObjectIdentifier.init)) }
      if let chunk = chunks.popFirst() { return chunk }
      if let failure { throw failure }
      return nil
    }
  }
}
