// swift-format-ignore-file

// <sys/signal.h>

public typealias sig_t = @convention(c) (Int32) -> Void

public var SIGHUP: Int32 { 1 }
public var SIGINT: Int32 { 2 }
public var SIGQUIT: Int32 { 3 }
public var SIGILL: Int32 { 4 }
public var SIGTRAP: Int32 { 5 }
public var SIGABRT: Int32 { 6 }
public var SIGFPE: Int32 { 8 }
public var SIGKILL: Int32 { 9 }
public var SIGBUS: Int32 { 10 }
public var SIGSEGV: Int32 { 11 }
public var SIGPIPE: Int32 { 13 }
public var SIGTERM: Int32 { 15 }
public var SIGSTOP: Int32 { 17 }
public var SIGTSTP: Int32 { 18 }
public var SIGCONT: Int32 { 19 }
public var SIGCHLD: Int32 { 20 }
public var SIGXFSZ: Int32 { 25 }
public var SIGWINCH: Int32 { 28 }
public var SIGUSR1: Int32 { 30 }
public var SIGUSR2: Int32 { 31 }
public var SA_ONSTACK: Int32 { 0x0001 }
public var SA_RESTART: Int32 { 0x0002 }
public var SIG_BLOCK: Int32 { 1 }
public var SIG_UNBLOCK: Int32 { 2 }
public var SIG_SETMASK: Int32 { 3 }

// From Swift's overlay of Darwin.
public var SIG_DFL: sig_t? { nil }
public var SIG_IGN: sig_t { fatalError() }

@discardableResult public func kill(_: pid_t, _: Int32) -> Int32 { fatalError() }
@discardableResult public func pthread_sigmask(_: Int32, _: UnsafePointer<sigset_t>!, _: UnsafeMutablePointer<sigset_t>!) -> Int32 { fatalError() }
@discardableResult public func raise(_: Int32) -> Int32 { fatalError() }
@discardableResult public func sigaction(_: Int32, _: UnsafePointer<sigaction>!, _: UnsafeMutablePointer<sigaction>!) -> Int32 { fatalError() }
@discardableResult public func sigaddset(_: UnsafeMutablePointer<sigset_t>!, _: Int32) -> Int32 { fatalError() }
@discardableResult public func sigemptyset(_: UnsafeMutablePointer<sigset_t>!) -> Int32 { fatalError() }
@discardableResult public func signal(_: Int32, _: (@convention(c) (Int32) -> Void)!) -> (@convention(c) (Int32) -> Void)! { fatalError() }

// <spawn.h>

public typealias posix_spawn_file_actions_t = UnsafeMutableRawPointer
public typealias posix_spawnattr_t = UnsafeMutableRawPointer

@discardableResult public func posix_spawn(_: UnsafeMutablePointer<pid_t>!, _: UnsafePointer<CChar>!, _: UnsafePointer<posix_spawn_file_actions_t?>!, _: UnsafePointer<posix_spawnattr_t?>!, _: UnsafePointer<UnsafeMutablePointer<CChar>?>!, _: UnsafePointer<UnsafeMutablePointer<CChar>?>!) -> Int32 { fatalError() }
@discardableResult public func posix_spawn_file_actions_adddup2(_: UnsafeMutablePointer<posix_spawn_file_actions_t?>!, _: Int32, _: Int32) -> Int32 { fatalError() }
@discardableResult public func posix_spawn_file_actions_destroy(_: UnsafeMutablePointer<posix_spawn_file_actions_t?>!) -> Int32 { fatalError() }
@discardableResult public func posix_spawn_file_actions_init(_: UnsafeMutablePointer<posix_spawn_file_actions_t?>!) -> Int32 { fatalError() }

// <stdlib.h> and <string.h>

public func abort() -> Never { fatalError() }
public func exit(_: Int32) -> Never { fatalError() }
public func free(_: UnsafeMutableRawPointer!) { fatalError() }
@discardableResult public func getenv(_: UnsafePointer<CChar>!) -> UnsafeMutablePointer<CChar>! { fatalError() }
@discardableResult public func memcmp(_: UnsafeRawPointer!, _: UnsafeRawPointer!, _: Int) -> Int32 { fatalError() }
@discardableResult public func realpath(_: UnsafePointer<CChar>!, _: UnsafeMutablePointer<CChar>!) -> UnsafeMutablePointer<CChar>! { fatalError() }
@discardableResult public func setenv(_: UnsafePointer<CChar>!, _: UnsafePointer<CChar>!, _: Int32) -> Int32 { fatalError() }
@discardableResult public func strdup(_: UnsafePointer<CChar>!) -> UnsafeMutablePointer<CChar>! { fatalError() }
@discardableResult public func strlen(_: UnsafePointer<CChar>!) -> UInt { fatalError() }
@discardableResult public func unsetenv(_: UnsafePointer<CChar>!) -> Int32 { fatalError() }

// <unistd.h> and <sched.h>

public func _exit(_: Int32) -> Never { fatalError() }
@discardableResult public func geteuid() -> uid_t { fatalError() }
@discardableResult public func getpgrp() -> pid_t { fatalError() }
@discardableResult public func getpid() -> pid_t { fatalError() }
@discardableResult public func getuid() -> uid_t { fatalError() }
@discardableResult public func sched_yield() -> Int32 { fatalError() }
@discardableResult public func setgid(_: gid_t) -> Int32 { fatalError() }
@discardableResult public func setuid(_: uid_t) -> Int32 { fatalError() }
@discardableResult public func sleep(_: UInt32) -> UInt32 { fatalError() }
@discardableResult public func usleep(_: useconds_t) -> Int32 { fatalError() }

// <sys/resource.h>

public typealias rlim_t = UInt64

public struct rlimit: Sendable {
  public var rlim_cur: rlim_t
  public var rlim_max: rlim_t
  public init() { fatalError() }
  public init(rlim_cur: rlim_t, rlim_max: rlim_t) { fatalError() }
}

public var RLIMIT_FSIZE: Int32 { 1 }

@discardableResult public func setrlimit(_: Int32, _: UnsafePointer<rlimit>!) -> Int32 { fatalError() }

// <sys/wait.h>

public struct idtype_t: RawRepresentable, Equatable, Sendable {
  public var rawValue: UInt32
  public init(_ rawValue: UInt32) { self.rawValue = rawValue }
  public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public struct siginfo_t {
  public var si_signo: Int32
  public var si_errno: Int32
  public var si_code: Int32
  public var si_pid: pid_t
  public var si_uid: uid_t
  public var si_status: Int32
  public init() { fatalError() }
}

public var P_ALL: idtype_t { idtype_t(0) }
public var P_PID: idtype_t { idtype_t(1) }
public var WNOHANG: Int32 { 0x00000001 }
public var WSTOPPED: Int32 { 0x00000008 }
public var WNOWAIT: Int32 { 0x00000020 }

@discardableResult public func waitid(_: idtype_t, _: id_t, _: UnsafeMutablePointer<siginfo_t>!, _: Int32) -> Int32 { fatalError() }
@discardableResult public func waitpid(_: pid_t, _: UnsafeMutablePointer<Int32>!, _: Int32) -> pid_t { fatalError() }

// <time.h>

public struct clockid_t: RawRepresentable, Equatable, Sendable {
  public var rawValue: UInt32
  public init(_ rawValue: UInt32) { self.rawValue = rawValue }
  public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public var CLOCK_REALTIME: clockid_t { clockid_t(0) }
public var CLOCK_MONOTONIC: clockid_t { clockid_t(6) }

@discardableResult public func clock_gettime(_: clockid_t, _: UnsafeMutablePointer<timespec>!) -> Int32 { fatalError() }
@discardableResult public func time(_: UnsafeMutablePointer<time_t>!) -> time_t { fatalError() }

// <sys/time.h>

public struct timeval: Sendable {
  public var tv_sec: time_t
  public var tv_usec: suseconds_t
  public init() { fatalError() }
  public init(tv_sec: time_t, tv_usec: suseconds_t) { fatalError() }
}
