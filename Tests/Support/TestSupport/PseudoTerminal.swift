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
  private let controller: CInt
  private let program: CInt
  private let controllerHold: DescriptorHold
  private let queue = DispatchQueue(label: "controller")
  private let source: any DispatchSourceRead
  /// The bytes written to the terminal so far; finishes when no program has the terminal open any more.
  private let written = CurrentValueChannel<[UInt8], Never>([])

  package init(size: TerminalSize) throws {
    var ends: (controller: CInt, program: CInt) = (-1, -1)
    guard openpty(&ends.controller, &ends.program, nil, nil, nil) == 0 else {
      throw TerminalError(code: errno, operation: "openpty")
    }
    let controller = try Self.moveUp(ends.controller)
    self.controller = controller
    controllerHold = DescriptorHold(controller)
    program = try Self.moveUp(ends.program)
    device = TerminalDevice(input: program, output: program)
    let source = DispatchSource.makeReadSource(fileDescriptor: controller, queue: queue)
    self.source = source
    resize(to: size)
    // The handler reads until no bytes are left, because a source may report a hang-up only once, even if there are
    // more bytes than one read returns.
    _ = fcntl(controller, F_SETFL, O_NONBLOCK)
    source.setEventHandler { [written] in
      var bytes = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = systemRead(controller, &bytes, bytes.count)
        if count > 0 {
          written.update { $0 += bytes[..<count] }
        } else if count == -1, errno == EAGAIN {
          return
        } else if count == 0 || errno != EINTR {
          source.cancel()
          written.finish()
          return
        }
      }
    }
    // Keeps the descriptor open until the source is cancelled. If it were closed earlier, the next descriptor with the
    // same number might never receive events.
    source.setCancelHandler { [controllerHold] in _ = controllerHold }
    source.activate()
  }

  /// Keeps child processes from inheriting a descriptor, and on Linux moves it to a number above those of other tests'
  /// sockets.
  ///
  /// On Linux, `URLSession` closes sockets that libdispatch still watches. If a new descriptor gets the number of such
  /// a socket, libdispatch never reports events for it.
  private static func moveUp(_ descriptor: CInt) throws -> CInt {
    #if canImport(Darwin)
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      return descriptor
    #else
      let moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 512)
      guard moved >= 0 else { throw TerminalError(code: errno, operation: "fcntl") }
      _ = systemClose(descriptor)
      return moved
    #endif
  }

  package func resize(to size: TerminalSize) {
    var size = winsize(ws_row: UInt16(size.rows), ws_col: UInt16(size.columns), ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(controller, UInt(TIOCSWINSZ), &size)
  }

  package func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = systemWrite(controller, bytes, bytes.count)
  }

  /// Waits until a text was written to the terminal, and returns all output up to the end of the text, with `E` for
  /// the escape character.
  ///
  /// Returns an empty string if no program has the terminal open any more and the text was never written.
  package func output(upTo text: String) async -> String {
    for await bytes in written.stream {
      let all = String(decoding: bytes, as: UTF8.self)
      if let range = all.range(of: text) { return String(all[..<range.upperBound]).replacing("\u{1B}", with: "E") }
    }
    return ""
  }

  /// Returns the terminal modes as bytes, for comparison.
  package func modes() throws -> [UInt8] {
    var modes = termios()
    guard tcgetattr(program, &modes) == 0 else { throw TerminalError(code: errno, operation: "tcgetattr") }
    return withUnsafeBytes(of: modes) { Array($0) }
  }

  /// Stops reading, and fills the terminal's buffer until it accepts no more bytes.
  package func stall() throws {
    source.suspend()
    queue.sync {}
    // Opens the terminal again, so that the nonblocking mode doesn't affect the program's own descriptor.
    let descriptor = open(ttyname(program), O_WRONLY | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw TerminalError(code: errno, operation: "open") }
    defer { _ = systemClose(descriptor) }
    let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    // Repeats, because the system frees space in the buffer as it moves bytes to the other end.
    repeat {
      var count = bytes.count
      while count > 0 { if systemWrite(descriptor, bytes, count) <= 0 { count /= 2 } }
    } while poll(&wanted, 1, 100) == 1
  }

  /// Resumes reading after ``stall()``.
  package func resume() {
    source.resume()
  }

  /// A handle for a program that is started in the terminal.
  package var handle: FileHandle { FileHandle(fileDescriptor: program, closeOnDealloc: false) }

  /// Closes this process's descriptor of the program's end.
  package func hangUp() {
    _ = systemClose(program)
  }

  package func close() {
    source.cancel()
  }
}

/// Closes a descriptor when the last reference to this object is released.
private final class DescriptorHold: Sendable {
  private let descriptor: CInt

  init(_ descriptor: CInt) {
    self.descriptor = descriptor
  }

  deinit {
    _ = systemClose(descriptor)
  }
}
