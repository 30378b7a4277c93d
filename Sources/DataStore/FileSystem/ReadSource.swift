package import Dispatch
internal import Foundation
internal import Multicast

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Calls a closure whenever bytes can be read from a descriptor, or its other end was closed.
///
/// On Linux, a thread waits for the descriptor. A dispatch source would now and then end the process when the other end
/// is closed, because libdispatch then uses its record of the descriptor on one thread and frees it on another.
///
/// - SeeAlso: https://github.com/swiftlang/swift-corelibs-libdispatch/issues/949
package final class ReadSource: Sendable {
  #if canImport(Darwin)
    // Unsafe: dispatch sources may be cancelled on any thread.
    private nonisolated(unsafe) let source: any DispatchSourceRead
  #else
    /// The end of a pipe that ends the thread; `nil` when the source was cancelled.
    private let pipeEnd: PipeEnd

    private final class PipeEnd: Sendable {
      private let descriptor: Lock<CInt?>

      init(_ descriptor: CInt) {
        self.descriptor = Lock(descriptor)
      }

      var hasEnded: Bool { descriptor.withLock { $0 == nil } }

      func end() {
        guard let descriptor = descriptor.withLock({ $0.take() }) else { return }
        // A child process that is starting may have a copy of this end, so the other end gets a byte.
        var byte: UInt8 = 0
        while write(descriptor, &byte, 1) == -1, errno == EINTR {}
        close(descriptor)
      }
    }
  #endif

  /// Starts to watch a descriptor.
  ///
  /// - Parameters:
  ///   - descriptor: The descriptor, which must stay open until `onRelease` is called.
  ///   - queue: The queue of both closures.
  ///   - onReadable: Called as long as a read would not block, unless the source was cancelled. It returns whether to
  ///     go on; otherwise the source is cancelled.
  ///   - onRelease: Called once, after the source was cancelled.
  package init(
    of descriptor: CInt, on queue: DispatchQueue, onReadable: @escaping @Sendable () -> Bool,
    onRelease: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    #if canImport(Darwin)
      // Unsafe: as above. The handler runs on the queue, and only cancels the source.
      nonisolated(unsafe) let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
      self.source = source
      source.setEventHandler { if !onReadable() { source.cancel() } }
      source.setCancelHandler(handler: onRelease)
      source.activate()
    #else
      var ends: [CInt] = [-1, -1]
      guard pipe(&ends) == 0 else { throw SystemError(code: errno, operation: "pipe", path: "") }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      let (otherEnd, pipeEnd) = (ends[0], PipeEnd(ends[1]))
      self.pipeEnd = pipeEnd
      Thread.detachNewThread {
        var requests = [descriptor, otherEnd].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        while true {
          // Only a signal can interrupt the call.
          if poll(&requests, nfds_t(requests.count), -1) == -1 { continue }
          if requests[1].revents != 0 { break }
          queue.sync { if !pipeEnd.hasEnded, !onReadable() { pipeEnd.end() } }
        }
        close(otherEnd)
        queue.async(execute: onRelease)
      }
    #endif
  }

  deinit {
    cancel()
  }

  /// Stops watching.
  package func cancel() {
    #if canImport(Darwin)
      source.cancel()
    #else
      pipeEnd.end()
    #endif
  }
}
