// swift-format-ignore-file

@_exported import DarwinStructures

// <fcntl.h>

public var O_RDONLY: Int32 { 0x0000 }
public var O_WRONLY: Int32 { 0x0001 }
public var O_RDWR: Int32 { 0x0002 }
public var O_NONBLOCK: Int32 { 0x0004 }
public var O_APPEND: Int32 { 0x0008 }
public var O_NOFOLLOW: Int32 { 0x0100 }
public var O_CREAT: Int32 { 0x0200 }
public var O_TRUNC: Int32 { 0x0400 }
public var O_EXCL: Int32 { 0x0800 }
public var O_EVTONLY: Int32 { 0x8000 }
public var O_NOCTTY: Int32 { 0x20000 }
public var O_DIRECTORY: Int32 { 0x100000 }
public var O_CLOEXEC: Int32 { 0x1000000 }
public var F_GETFD: Int32 { 1 }
public var F_SETFD: Int32 { 2 }
public var F_GETFL: Int32 { 3 }
public var F_SETFL: Int32 { 4 }
public var F_FULLFSYNC: Int32 { 51 }
public var F_DUPFD_CLOEXEC: Int32 { 67 }
public var FD_CLOEXEC: Int32 { 1 }
public var AT_FDCWD: Int32 { -2 }
public var AT_SYMLINK_NOFOLLOW: Int32 { 0x0020 }
public var LOCK_SH: Int32 { 0x01 }
public var LOCK_EX: Int32 { 0x02 }
public var LOCK_NB: Int32 { 0x04 }
public var LOCK_UN: Int32 { 0x08 }

// The variants of variadic functions that Swift's overlay of Darwin declares.
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { fatalError() }
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { fatalError() }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { fatalError() }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { fatalError() }
public func fcntl(_ fd: Int32, _ cmd: Int32) -> Int32 { fatalError() }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ value: Int32) -> Int32 { fatalError() }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ ptr: UnsafeMutableRawPointer) -> Int32 { fatalError() }

// <sys/file.h>

@discardableResult public func flock(_: Int32, _: Int32) -> Int32 { fatalError() }

// <sys/stat.h>

public var S_IFMT: mode_t { 0o170000 }
public var S_IFDIR: mode_t { 0o040000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFLNK: mode_t { 0o120000 }
public var S_IFSOCK: mode_t { 0o140000 }

@discardableResult public func chmod(_: UnsafePointer<CChar>!, _: mode_t) -> Int32 { fatalError() }
@discardableResult public func fchmod(_: Int32, _: mode_t) -> Int32 { fatalError() }
@discardableResult public func fstat(_: Int32, _: UnsafeMutablePointer<stat>!) -> Int32 { fatalError() }
@discardableResult public func fstatat(_: Int32, _: UnsafePointer<CChar>!, _: UnsafeMutablePointer<stat>!, _: Int32) -> Int32 { fatalError() }
@discardableResult public func lstat(_: UnsafePointer<CChar>!, _: UnsafeMutablePointer<stat>!) -> Int32 { fatalError() }
@discardableResult public func mkdir(_: UnsafePointer<CChar>!, _: mode_t) -> Int32 { fatalError() }
@discardableResult public func mkfifo(_: UnsafePointer<CChar>!, _: mode_t) -> Int32 { fatalError() }
@discardableResult public func stat(_: UnsafePointer<CChar>!, _: UnsafeMutablePointer<stat>!) -> Int32 { fatalError() }
@discardableResult public func umask(_: mode_t) -> mode_t { fatalError() }

// <sys/statvfs.h>

public var ST_RDONLY: Int32 { 0x00000001 }
public var ST_NOSUID: Int32 { 0x00000002 }

@discardableResult public func fstatvfs(_: Int32, _: UnsafeMutablePointer<statvfs>!) -> Int32 { fatalError() }
@discardableResult public func statvfs(_: UnsafePointer<CChar>!, _: UnsafeMutablePointer<statvfs>!) -> Int32 { fatalError() }

// <dirent.h>

public struct DIR {}

public struct dirent: Sendable {
  public var d_ino: ino_t
  public var d_seekoff: UInt64
  public var d_reclen: UInt16
  public var d_namlen: UInt16
  public var d_type: UInt8
  /// Shortened: on Darwin, a tuple of 1024 elements.
  public var d_name: (CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar)
  public init() { fatalError() }
}

@discardableResult public func closedir(_: UnsafeMutablePointer<DIR>!) -> Int32 { fatalError() }
@discardableResult public func fdopendir(_: Int32) -> UnsafeMutablePointer<DIR>! { fatalError() }
@discardableResult public func opendir(_: UnsafePointer<CChar>!) -> UnsafeMutablePointer<DIR>! { fatalError() }
@discardableResult public func readdir(_: UnsafeMutablePointer<DIR>!) -> UnsafeMutablePointer<dirent>! { fatalError() }

// <stdio.h>

@discardableResult public func rename(_: UnsafePointer<CChar>!, _: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func renameat(_: Int32, _: UnsafePointer<CChar>!, _: Int32, _: UnsafePointer<CChar>!) -> Int32 { fatalError() }

// <unistd.h>

public var SEEK_SET: Int32 { 0 }
public var SEEK_CUR: Int32 { 1 }
public var SEEK_END: Int32 { 2 }

@discardableResult public func chown(_: UnsafePointer<CChar>!, _: uid_t, _: gid_t) -> Int32 { fatalError() }
@discardableResult public func close(_: Int32) -> Int32 { fatalError() }
@discardableResult public func dup(_: Int32) -> Int32 { fatalError() }
@discardableResult public func dup2(_: Int32, _: Int32) -> Int32 { fatalError() }
@discardableResult public func fsync(_: Int32) -> Int32 { fatalError() }
@discardableResult public func ftruncate(_: Int32, _: off_t) -> Int32 { fatalError() }
@discardableResult public func link(_: UnsafePointer<CChar>!, _: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func lseek(_: Int32, _: off_t, _: Int32) -> off_t { fatalError() }
@discardableResult public func pipe(_: UnsafeMutablePointer<Int32>!) -> Int32 { fatalError() }
@discardableResult public func pread(_: Int32, _: UnsafeMutableRawPointer!, _: Int, _: off_t) -> Int { fatalError() }
@discardableResult public func pwrite(_: Int32, _: UnsafeRawPointer!, _: Int, _: off_t) -> Int { fatalError() }
@discardableResult public func read(_: Int32, _: UnsafeMutableRawPointer!, _: Int) -> Int { fatalError() }
@discardableResult public func rmdir(_: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func symlink(_: UnsafePointer<CChar>!, _: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func truncate(_: UnsafePointer<CChar>!, _: off_t) -> Int32 { fatalError() }
@discardableResult public func unlink(_: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func unlinkat(_: Int32, _: UnsafePointer<CChar>!, _: Int32) -> Int32 { fatalError() }
@discardableResult public func write(_: Int32, _: UnsafeRawPointer!, _: Int) -> Int { fatalError() }
