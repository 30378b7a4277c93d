internal import DataStore
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
  private let source: ReadSource
  /// A channel of all bytes written to the terminal so far.
  ///
  /// It finishes when every process, including this one, has closed the program's end.
  private let outputChannel = CurrentValueChannel<[UInt8], Never>([])

  package init(size: TerminalSize) throws {
    var ends: (controlling: CInt, program: CInt) = (-1, -1)
    guard openpty(&ends.controlling, &ends.program, nil, nil, nil) == 0 else {
      throw TerminalError(code: errno, operation: "openpty")
    }
    // Child processes don't inherit the ends.
    for end in [ends.controlling, ends.program] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let controllingEnd = ends.controlling
    (self.controllingEnd, programEnd) = (controllingEnd, ends.program)
    controllingEndOwner = DescriptorOwner(controllingEnd)
    device = TerminalDevice(input: programEnd, output: programEnd)
    _ = fcntl(controllingEnd, F_SETFL, O_NONBLOCK)
    // Keeps the descriptor open until the source has released it.
    source = try ReadSource(of: controllingEnd, on: queue) { [outputChannel] in
      var bytes = [UInt8](repeating: 0, count: 65_536)
      let count = systemRead(controllingEnd, &bytes, bytes.count)
      if count > 0 { outputChannel.update { $0 += bytes[..<count] } }
      let isOpen = count > 0 || count == -1 && [EAGAIN, EINTR].contains(errno)
      if !isOpen { outputChannel.finish() }
      return isOpen
    } onRelease: { [controllingEndOwner] in
      _ = controllingEndOwner
    }
    resize(to: size)
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
    queue.sync { queue.suspend() }
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
    queue.resume()
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
