// swift-format-ignore-file

// The structures that share their names with functions, and two types that the structure `sigaction` needs. One Swift
// module can't declare a structure and a function of the same name, so the functions are in the module `Darwin`, which
// exports this module.

// <sys/stat.h>

public struct stat: Sendable {
  public var st_dev: dev_t
  public var st_mode: mode_t
  public var st_nlink: nlink_t
  public var st_ino: ino_t
  public var st_uid: uid_t
  public var st_gid: gid_t
  public var st_rdev: dev_t
  public var st_atimespec: timespec
  public var st_mtimespec: timespec
  public var st_ctimespec: timespec
  public var st_birthtimespec: timespec
  public var st_size: off_t
  public var st_blocks: blkcnt_t
  public var st_blksize: blksize_t
  public var st_flags: UInt32
  public var st_gen: UInt32
  public init() { fatalError() }
}

// <sys/statvfs.h>

public struct statvfs: Sendable {
  public var f_bsize: UInt
  public var f_frsize: UInt
  public var f_blocks: UInt32
  public var f_bfree: UInt32
  public var f_bavail: UInt32
  public var f_files: UInt32
  public var f_ffree: UInt32
  public var f_favail: UInt32
  public var f_fsid: UInt
  public var f_flag: UInt
  public var f_namemax: UInt
  public init() { fatalError() }
}

// <sys/signal.h>

public typealias sigset_t = UInt32

/// In C, a union, which also has the member `__sa_sigaction`.
public struct __sigaction_u: Sendable {
  public var __sa_handler: (@convention(c) (Int32) -> Void)!
  public init() { fatalError() }
}

public struct sigaction: Sendable {
  public var __sigaction_u: __sigaction_u
  public var sa_mask: sigset_t
  public var sa_flags: Int32
  public init() { fatalError() }
}
