internal import Dispatch
package import Foundation
internal import Multicast
package import TerminalUI

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A pseudo-terminal whose controlling end belongs to a test.
package final class PseudoTerminal {
  /// The program's end.
  package let device: TerminalDevice
  private let controllingEnd: CInt
  private let programEnd: CInt
  private let controllingEndOwner: DescriptorOwner
  private let queue = DispatchQueue(label: "controller")
  private let source: any DispatchSourceRead
  /// A channel of all bytes written to the terminal so far.
  ///
  /// It finishes when every process, including this one, has closed the program's end.
  private let outputChannel = CurrentValueChannel<[UInt8], Never>([])

  package init(size: TerminalSize) throws {
    var ends: (controlling: CInt, program: CInt) = (-1, -1)
    guard openpty(&ends.controlling, &ends.program, nil, nil, nil) == 0 else {
      throw TerminalError(code: errno, operation: "openpty")
    }
    let controllingEnd = try Self.protect(ends.controlling)
    self.controllingEnd = controllingEnd
    controllingEndOwner = DescriptorOwner(controllingEnd)
    programEnd = try Self.protect(ends.program)
    device = TerminalDevice(input: programEnd, output: programEnd)
    let source = DispatchSource.makeReadSource(fileDescriptor: controllingEnd, queue: queue)
    self.source = source
    resize(to: size)
    // The handler reads until no bytes are left, because a source may report a hang-up only once, even if there are
    // more bytes than one read returns.
    _ = fcntl(controllingEnd, F_SETFL, O_NONBLOCK)
    source.setEventHandler { [outputChannel] in
      var bytes = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = systemRead(controllingEnd, &bytes, bytes.count)
        if count > 0 {
          outputChannel.update { $0 += bytes[..<count] }
        } else if count == -1, errno == EAGAIN {
          return
        } else if count == 0 || errno != EINTR {
          source.cancel()
          outputChannel.finish()
          return
        }
      }
    }
    // Keeps the descriptor open until the source is cancelled. If it were closed earlier, the next descriptor with the
    // same number might never receive events.
    source.setCancelHandler { [controllingEndOwner] in _ = controllingEndOwner }
    source.activate()
  }

  /// Protects a descriptor from child processes and, on Linux, from `URLSession`, and returns the descriptor to use.
  ///
  /// Child processes don't inherit the returned descriptor. On Linux, it has a number above those of other tests'
  /// sockets, because `URLSession` closes sockets that libdispatch still watches. If a new descriptor gets the number
  /// of such a socket, libdispatch never reports events for the descriptor.
  private static func protect(_ descriptor: CInt) throws -> CInt {
    #if canImport(Darwin)
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      return descriptor
    #else
      let lowestNumber: CInt = 512
      let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, lowestNumber)
      guard duplicate >= 0 else { throw TerminalError(code: errno, operation: "fcntl") }
      _ = systemClose(descriptor)
      return duplicate
    #endif
  }

  package func resize(to size: TerminalSize) {
    var windowSize = winsize(ws_row: UInt16(size.rows), ws_col: UInt16(size.columns), ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(controllingEnd, UInt(TIOCSWINSZ), &windowSize)
  }

  package func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = systemWrite(controllingEnd, bytes, bytes.count)
  }

  /// Waits until a text was written to the terminal, and returns all output up to the end of the text, with `E` for
  /// the escape character.
  ///
  /// Returns an empty string if every process has closed the program's end and the text was never written.
  package func output(upTo text: String) async -> String {
    for await bytes in outputChannel.stream {
      let all = String(decoding: bytes, as: UTF8.self)
      if let range = all.range(of: text) { return String(all[..<range.upperBound]).replacing("\u{1B}", with: "E") }
    }
    return ""
  }

  /// Returns the terminal modes as bytes, for comparison.
  package func modes() throws -> [UInt8] {
    var modes = termios()
    guard tcgetattr(programEnd, &modes) == 0 else { throw TerminalError(code: errno, operation: "tcgetattr") }
    return withUnsafeBytes(of: modes) { Array($0) }
  }

  /// Stops reading, and fills the terminal's buffer until it accepts no more bytes.
  package func stall() throws {
    source.suspend()
    // Waits for the event handler, which may still be reading.
    queue.sync {}
    // Opens the terminal again, so that the nonblocking mode doesn't affect the program's own descriptor.
    let descriptor = open(ttyname(programEnd), O_WRONLY | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw TerminalError(code: errno, operation: "open") }
    defer { _ = systemClose(descriptor) }
    let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
    let timeoutMilliseconds: CInt = 100
    var pollRequest = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    // Repeats, because the system frees space in the buffer as it moves bytes to the other end.
    repeat {
      // Writes fewer and fewer bytes, until the buffer doesn't accept even one.
      var count = bytes.count
      while count > 0 { if systemWrite(descriptor, bytes, count) <= 0 { count /= 2 } }
    } while poll(&pollRequest, 1, timeoutMilliseconds) == 1
  }

  /// Resumes reading after ``stall()``.
  package func resume() {
    source.resume()
  }

  /// A handle for a program that is started in the terminal.
  package var handle: FileHandle { FileHandle(fileDescriptor: programEnd, closeOnDealloc: false) }

  /// Closes this process's descriptor of the program's end.
  package func hangUp() {
    _ = systemClose(programEnd)
  }

  /// Stops reading, so that the controlling end is closed when this object is released.
  package func close() {
    source.cancel()
  }
}

/// Closes a descriptor when the last reference to this object is released.
private final class DescriptorOwner: Sendable {
  private let descriptor: CInt

  init(_ descriptor: CInt) {
    self.descriptor = descriptor
  }

  deinit {
    _ = systemClose(descriptor)
  }
}
