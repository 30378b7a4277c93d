public import Foundation

/// Something that a store keeps, as ``KeyValueStore/erase(where:)`` asks about it.
///
/// A value is an item in whatever state it is, each part of a value in parts is one, and so are quarantined bytes.
public struct StoredItem {
  /// The key that the item is or was stored under; `nil` if it belongs to no single one, as a quarantined database does.
  public let key: StoreKeyName?

  private let read: () -> Data

  /// Creates an item.
  ///
  /// - Parameters:
  ///   - key: The key that it is or was stored under; `nil` if it belongs to no single one.
  ///   - bytes: Reads all its bytes.
  public init(key: StoreKeyName?, bytes: @escaping () -> Data) {
    self.key = key
    read = bytes
  }

  /// All its bytes, as they are stored; none if they can't be read.
  ///
  /// - Complexity: Reads them each time.
  public var bytes: Data { read() }
}

extension StoredItem {
  /// Creates an item that is kept under the name of a value, of a part or of quarantined bytes.
  ///
  /// - Parameters:
  ///   - name: The name, as a ``StoreBackend`` knows it.
  ///   - bytes: Reads all its bytes.
  package init(name: String, bytes: @escaping () -> Data) {
    // A name of quarantined bytes is none of a key.
    self.init(key: StoreKeyName(encoded: name) ?? StoreKeyName(encoded: Self.owner(of: name)), bytes: bytes)
  }

  /// The encoded key that a value, a part or quarantined bytes belong to.
  private static func owner(of name: String) -> String {
    if let end = name.range(of: quarantineMark, options: .backwards) { return String(name[..<end.lowerBound]) }
    return String(name.prefix { $0 != StorePartName.separator })
  }

  /// What follows the encoded key in a name of quarantined bytes.
  static var quarantineMark: String { ".corrupt-" }
}
