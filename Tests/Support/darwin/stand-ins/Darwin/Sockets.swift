// swift-format-ignore-file

// <sys/socket.h>

public typealias sa_family_t = UInt8
public typealias socklen_t = UInt32

public struct sockaddr: Sendable {
  public var sa_len: UInt8
  public var sa_family: sa_family_t
  public var sa_data: (CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar)
  public init() { fatalError() }
}

public var AF_UNIX: Int32 { 1 }
public var AF_INET: Int32 { 2 }
public var SOCK_STREAM: Int32 { 1 }
public var SOL_SOCKET: Int32 { 0xffff }
public var SO_REUSEADDR: Int32 { 0x0004 }
public var SO_SNDBUF: Int32 { 0x1001 }
public var SO_RCVBUF: Int32 { 0x1002 }
public var SO_NOSIGPIPE: Int32 { 0x1022 }
public var SHUT_RD: Int32 { 0 }
public var SHUT_WR: Int32 { 1 }
public var SHUT_RDWR: Int32 { 2 }

@discardableResult public func accept(_: Int32, _: UnsafeMutablePointer<sockaddr>!, _: UnsafeMutablePointer<socklen_t>!) -> Int32 { fatalError() }
@discardableResult public func bind(_: Int32, _: UnsafePointer<sockaddr>!, _: socklen_t) -> Int32 { fatalError() }
@discardableResult public func connect(_: Int32, _: UnsafePointer<sockaddr>!, _: socklen_t) -> Int32 { fatalError() }
@discardableResult public func getpeername(_: Int32, _: UnsafeMutablePointer<sockaddr>!, _: UnsafeMutablePointer<socklen_t>!) -> Int32 { fatalError() }
@discardableResult public func getsockname(_: Int32, _: UnsafeMutablePointer<sockaddr>!, _: UnsafeMutablePointer<socklen_t>!) -> Int32 { fatalError() }
@discardableResult public func listen(_: Int32, _: Int32) -> Int32 { fatalError() }
@discardableResult public func recv(_: Int32, _: UnsafeMutableRawPointer!, _: Int, _: Int32) -> Int { fatalError() }
@discardableResult public func send(_: Int32, _: UnsafeRawPointer!, _: Int, _: Int32) -> Int { fatalError() }
@discardableResult public func setsockopt(_: Int32, _: Int32, _: Int32, _: UnsafeRawPointer!, _: socklen_t) -> Int32 { fatalError() }
@discardableResult public func shutdown(_: Int32, _: Int32) -> Int32 { fatalError() }
@discardableResult public func socket(_: Int32, _: Int32, _: Int32) -> Int32 { fatalError() }
@discardableResult public func socketpair(_: Int32, _: Int32, _: Int32, _: UnsafeMutablePointer<Int32>!) -> Int32 { fatalError() }

// <sys/un.h>

public struct sockaddr_un: Sendable {
  public var sun_len: UInt8
  public var sun_family: sa_family_t
  /// Shortened: on Darwin, a tuple of 104 elements.
  public var sun_path: (CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar)
  public init() { fatalError() }
}

// <netinet/in.h>

public typealias in_addr_t = UInt32
public typealias in_port_t = UInt16

public struct in_addr: Sendable {
  public var s_addr: in_addr_t
  public init() { fatalError() }
  public init(s_addr: in_addr_t) { fatalError() }
}

public struct sockaddr_in: Sendable {
  public var sin_len: UInt8
  public var sin_family: sa_family_t
  public var sin_port: in_port_t
  public var sin_addr: in_addr
  public var sin_zero: (CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar)
  public init() { fatalError() }
}

// <sys/poll.h>

public typealias nfds_t = UInt32

public struct pollfd: Sendable {
  public var fd: Int32
  public var events: Int16
  public var revents: Int16
  public init() { fatalError() }
  public init(fd: Int32, events: Int16, revents: Int16) { fatalError() }
}

public var POLLIN: Int32 { 0x0001 }
public var POLLOUT: Int32 { 0x0004 }
public var POLLERR: Int32 { 0x0008 }
public var POLLHUP: Int32 { 0x0010 }

@discardableResult public func poll(_: UnsafeMutablePointer<pollfd>!, _: nfds_t, _: Int32) -> Int32 { fatalError() }
