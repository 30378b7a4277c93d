// swift-format-ignore-file

// <sys/termios.h>

public typealias cc_t = UInt8
public typealias speed_t = UInt
public typealias tcflag_t = UInt

public struct termios: Sendable {
  public var c_iflag: tcflag_t
  public var c_oflag: tcflag_t
  public var c_cflag: tcflag_t
  public var c_lflag: tcflag_t
  public var c_cc: (cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t, cc_t)
  public var c_ispeed: speed_t
  public var c_ospeed: speed_t
  public init() { fatalError() }
}

public var TCSANOW: Int32 { 0 }
public var TCSADRAIN: Int32 { 1 }
public var TCSAFLUSH: Int32 { 2 }
public var ECHO: Int32 { 0x00000008 }
public var ISIG: Int32 { 0x00000080 }
public var ICANON: Int32 { 0x00000100 }

public func cfmakeraw(_: UnsafeMutablePointer<termios>!) { fatalError() }
@discardableResult public func tcgetattr(_: Int32, _: UnsafeMutablePointer<termios>!) -> Int32 { fatalError() }
@discardableResult public func tcsetattr(_: Int32, _: Int32, _: UnsafePointer<termios>!) -> Int32 { fatalError() }

// <sys/ttycom.h> and <sys/ioctl.h>, with the constants and the variants of `ioctl` that Swift's overlay of Darwin
// declares.

public struct winsize: Sendable {
  public var ws_row: UInt16
  public var ws_col: UInt16
  public var ws_xpixel: UInt16
  public var ws_ypixel: UInt16
  public init() { fatalError() }
  public init(ws_row: UInt16, ws_col: UInt16, ws_xpixel: UInt16, ws_ypixel: UInt16) { fatalError() }
}

public var TIOCGWINSZ: UInt { 0x40087468 }
public var TIOCSWINSZ: UInt { 0x80087467 }
public var TIOCSCTTY: UInt { 0x20007461 }

public func ioctl(_ fd: CInt, _ request: UInt) -> CInt { fatalError() }
public func ioctl(_ fd: CInt, _ request: UInt, _ value: CInt) -> CInt { fatalError() }
public func ioctl(_ fd: CInt, _ request: UInt, _ ptr: UnsafeMutableRawPointer) -> CInt { fatalError() }

// <unistd.h>

public var STDIN_FILENO: Int32 { 0 }
public var STDOUT_FILENO: Int32 { 1 }
public var STDERR_FILENO: Int32 { 2 }

@discardableResult public func isatty(_: Int32) -> Int32 { fatalError() }
@discardableResult public func tcgetpgrp(_: Int32) -> pid_t { fatalError() }
@discardableResult public func tcsetpgrp(_: Int32, _: pid_t) -> Int32 { fatalError() }
@discardableResult public func ttyname(_: Int32) -> UnsafeMutablePointer<CChar>! { fatalError() }

// <util.h>

@discardableResult public func openpty(_: UnsafeMutablePointer<Int32>!, _: UnsafeMutablePointer<Int32>!, _: UnsafeMutablePointer<CChar>!, _: UnsafeMutablePointer<termios>!, _: UnsafeMutablePointer<winsize>!) -> Int32 { fatalError() }
