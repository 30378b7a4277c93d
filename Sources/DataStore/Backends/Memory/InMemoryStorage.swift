public import Foundation
internal import Multicast

/// Bytes in memory, which outlive the stores over them.
///
/// Like the folder of a file store it can be read and changed from outside, so a test can corrupt a value. A store
/// notices such changes at its next call.
public final class InMemoryStorage: Sendable {
  private struct Contents {
    var bytes: [String: Data] = [:]
    /// Counts changes.
    var version: UInt64 = 0
  }

  private let contents = Lock(Contents())

  /// Creates an empty storage.
  public init() {}

  /// The bytes under a name, or `nil`.
  ///
  /// A name is an encoded ``StoreKeyName``, or one that ``StoreEvent/valueQuarantined(_:movedTo:reason:)`` reported.
  public subscript(name: String) -> Data? {
    get { contents.withLock { $0.bytes[name] } }
    set {
      contents.withLock {
        $0.bytes[name] = newValue
        $0.version += 1
      }
    }
  }

  /// All names, in no order.
  public var names: [String] { contents.withLock { Array($0.bytes.keys) } }

  /// Differs from an earlier value if anything was changed since.
  var version: UInt64 { contents.withLock { $0.version } }

  /// Makes all changes, unless anything was changed since `version`.
  func apply(_ writes: [StoreWrite], removing names: [String], ifVersionIs version: UInt64) -> Bool {
    contents.withLock { contents in
      guard contents.version == version else { return false }
      contents.version += 1
      for name in names { contents.bytes[name] = nil }
      for write in writes { contents.bytes[write.name] = write.bytes }
      return true
    }
  }

  /// Gives bytes the first new name that is free; `nil` if the old name has other bytes.
  func move(_ bytes: Data, from name: String, to newName: (_ attempt: Int) -> String) -> String? {
    contents.withLock { contents in
      guard contents.bytes[name] == bytes else { return nil }
      var attempt = 1
      while contents.bytes[newName(attempt)] != nil { attempt += 1 }
      contents.bytes[newName(attempt)] = bytes
      contents.bytes[name] = nil
      contents.version += 1
      return newName(attempt)
    }
  }
}
