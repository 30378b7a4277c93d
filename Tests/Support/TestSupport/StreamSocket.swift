#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The parts of stream sockets that differ between the C libraries.
package enum StreamSocket {
  /// The type of a stream socket, for `socket` and `socketpair`.
  package static var type: CInt {
    #if canImport(Glibc)
      CInt(SOCK_STREAM.rawValue)
    #else
      SOCK_STREAM
    #endif
  }

  /// Sends bytes to a socket, and returns how many were sent, or -1 on failure.
  ///
  /// If the other end is closed, the call fails with `EPIPE` instead of raising `SIGPIPE`.
  package static func send(_ bytes: UnsafeRawBufferPointer, to socket: CInt) -> Int {
    disableSIGPIPE(of: socket)
    #if canImport(Darwin)
      let flags: CInt = 0
    #else
      let flags = CInt(MSG_NOSIGNAL)
    #endif
    return systemSend(socket, bytes.baseAddress, bytes.count, flags)
  }

  /// Prevents writes to a socket from raising `SIGPIPE`.
  ///
  /// Does nothing on Linux, where sockets have no such option.
  static func disableSIGPIPE(of socket: CInt) {
    #if canImport(Darwin)
      var isOn: CInt = 1
      setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<CInt>.size))
    #endif
  }
}

/// The system's `send`, which the method of the same name shadows.
private func systemSend(_ socket: CInt, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: CInt) -> Int {
  send(socket, bytes, count, flags)
}
