// swift-format-ignore-file

// The types of these headers are in this module, because the structure `stat` has fields of many of them.

// <sys/types.h>

public typealias blkcnt_t = Int64
public typealias blksize_t = Int32
public typealias dev_t = Int32
public typealias gid_t = UInt32
public typealias id_t = UInt32
public typealias ino_t = UInt64
public typealias mode_t = UInt16
public typealias nlink_t = UInt16
public typealias off_t = Int64
public typealias pid_t = Int32
public typealias size_t = Int
public typealias ssize_t = Int
public typealias suseconds_t = Int32
public typealias time_t = Int
public typealias uid_t = UInt32
public typealias useconds_t = UInt32

// <time.h>

public struct timespec: Sendable {
  public var tv_sec: time_t
  public var tv_nsec: Int
  public init() { fatalError() }
  public init(tv_sec: time_t, tv_nsec: Int) { fatalError() }
}
