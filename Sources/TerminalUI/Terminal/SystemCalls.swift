#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

// System calls under other names, because a method such as `read()` shadows the system call of the same name.

package func systemRead(_ descriptor: CInt, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
  read(descriptor, bytes, count)
}

package func systemWrite(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}

package func systemClose(_ descriptor: CInt) -> CInt {
  close(descriptor)
}

/// Creates the action that calls a handler when a signal arrives.
func signalAction(flags: CInt = 0, _ handler: (@convention(c) (CInt) -> Void)?) -> sigaction {
  var action = sigaction()
  #if canImport(Darwin)
    action.__sigaction_u.__sa_handler = handler
  #elseif canImport(Glibc)
    action.__sigaction_handler.sa_handler = handler
  #else
    action.__sa_handler.sa_handler = handler
  #endif
  sigemptyset(&action.sa_mask)
  action.sa_flags = flags
  return action
}

/// Whether an action ignores its signal.
func isIgnoring(_ action: sigaction) -> Bool {
  #if canImport(Darwin)
    let handler = action.__sigaction_u.__sa_handler
  #elseif canImport(Glibc)
    let handler = action.__sigaction_handler.sa_handler
  #else
    let handler = action.__sa_handler.sa_handler
  #endif
  return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
}
