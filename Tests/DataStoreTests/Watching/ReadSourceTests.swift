import Foundation
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

struct ReadSourceTests {
  /// Two connected sockets.
  private static func socketPair() throws -> (watched: CInt, other: CInt) {
    var ends: [CInt] = [-1, -1]
    #if canImport(Glibc)
      let kind = CInt(SOCK_STREAM.rawValue)
    #else
      let kind = SOCK_STREAM
    #endif
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
      throw SystemError(code: errno, operation: "socketpair", path: "")
    }
    return (ends[0], ends[1])
  }

  /// Returns the number of bytes that were read from the descriptor; 0 after the other end was closed.
  private static func read(_ descriptor: CInt) -> Int {
    var bytes: [UInt8] = [0, 0]
    return recv(descriptor, &bytes, bytes.count, 0)
  }

  @Test func `What was written is reported until it is read, and then the end`() async throws {
    let (watched, other) = try Self.socketPair()
    let counts = AsyncStream<Int>.makeStream()
    var source: ReadSource? = try ReadSource(of: watched, on: DispatchQueue(label: "source")) {
      let count = Self.read(watched)
      counts.continuation.yield(count)
      return count > 0
    } onRelease: {
      close(watched)
      counts.continuation.finish()
    }
    #expect(send(other, "abc", 3, 0) == 3)
    var iterator = counts.stream.makeAsyncIterator()
    #expect(await iterator.next() == 2)
    #expect(await iterator.next() == 1)
    #expect(send(other, "d", 1, 0) == 1)
    #expect(await iterator.next() == 1)
    close(other)
    #expect(await iterator.next() == 0)
    // The end is reported once. The source releases the descriptor, although nothing has cancelled it.
    #expect(await iterator.next() == nil)
    withExtendedLifetime(source) {}
    source = nil
  }

  @Test(arguments: [true, false])
  func `A source that is cancelled or released reports nothing more, and releases its descriptor`(
    isCancelled: Bool
  ) async throws {
    let (watched, other) = try Self.socketPair()
    let reports = AsyncStream<Void>.makeStream()
    let queue = DispatchQueue(label: "source")
    try queue.sync {
      let source = try ReadSource(of: watched, on: queue) {
        reports.continuation.yield()
        return true
      } onRelease: {
        close(watched)
        reports.continuation.finish()
      }
      // The source may notice this, but can't report it yet.
      #expect(send(other, "a", 1, 0) == 1)
      if isCancelled { source.cancel() }
    }
    for await _ in reports.stream { Issue.record("The source has reported.") }
    close(other)
  }
}
