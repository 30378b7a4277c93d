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

/// A terminal that a test holds the other end of.
package final class PseudoTerminal {
  /// The end a program has.
  package let device: TerminalDevice
  private let controller: CInt
  private let program: CInt
  private let controllerHold: DescriptorHold
  private let queue = DispatchQueue(label: "controller")
  private let source: any DispatchSourceRead
  /// All that was written to the terminal so far; finished when no program has it any more.
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
    // To its end, as a source may tell of a hang-up but once, also where there is more than one read takes.
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
    // Not earlier: what next has the number of a descriptor that is closed under its source may never be told of.
    source.setCancelHandler { [controllerHold] in _ = controllerHold }
    source.activate()
  }

  /// Gives a descriptor a number that no socket of another test has had.
  ///
  /// `URLSession` closes sockets that libdispatch still watches, on Linux, and libdispatch never tells of a descriptor
  /// that gets the number of such a one meanwhile.
  private static func moveUp(_ descriptor: CInt) throws -> CInt {
    let moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 512)
    guard moved >= 0 else { throw TerminalError(code: errno, operation: "fcntl") }
    _ = systemClose(descriptor)
    return moved
  }

  package func resize(to size: TerminalSize) {
    var size = winsize(ws_row: UInt16(size.rows), ws_col: UInt16(size.columns), ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(controller, UInt(TIOCSWINSZ), &size)
  }

  package func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = systemWrite(controller, bytes, bytes.count)
  }

  /// Waits until the terminal was sent a text, and returns all it was sent up to its end, with `E` for escape.
  ///
  /// Empty when no program has the terminal any more and the text never came.
  package func output(upTo text: String) async -> String {
    for await bytes in written.stream {
      let all = String(decoding: bytes, as: UTF8.self)
      if let range = all.range(of: text) { return String(all[..<range.upperBound]).replacing("\u{1B}", with: "E") }
    }
    return ""
  }

  /// The modes, as bytes to compare.
  package func modes() throws -> [UInt8] {
    var modes = termios()
    guard tcgetattr(program, &modes) == 0 else { throw TerminalError(code: errno, operation: "tcgetattr") }
    return withUnsafeBytes(of: modes) { Array($0) }
  }

  /// Reads nothing any more, and writes until the terminal takes not one byte more.
  package func stall() throws {
    source.suspend()
    queue.sync {}
    // By a description of its own, so that whether it waits is not changed for those who have the terminal.
    let descriptor = open(ttyname(program), O_WRONLY | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw TerminalError(code: errno, operation: "open") }
    defer { _ = systemClose(descriptor) }
    let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    // The system makes room again as it moves bytes on to the other end.
    repeat {
      var count = bytes.count
      while count > 0 { if systemWrite(descriptor, bytes, count) <= 0 { count /= 2 } }
    } while poll(&wanted, 1, 100) == 1
  }

  /// Reads again after ``stall()``.
  package func goOn() {
    source.resume()
  }

  /// For a program that is started in the terminal.
  package var handle: FileHandle { FileHandle(fileDescriptor: program, closeOnDealloc: false) }

  /// Gives this process's hold on the program's end up.
  package func hangUp() {
    _ = systemClose(program)
  }

  package func close() {
    source.cancel()
  }
}

/// Closes a descriptor when nobody holds it any more.
private final class DescriptorHold: Sendable {
  private let descriptor: CInt

  init(_ descriptor: CInt) {
    self.descriptor = descriptor
  }

  deinit {
    _ = systemClose(descriptor)
  }
}
