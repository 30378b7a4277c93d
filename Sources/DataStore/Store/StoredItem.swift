public import Foundation

/// A piece of a store's data, which ``KeyValueStore/erase(where:)`` passes to its closure.
///
/// An item is a value (even one that can't be decoded), one part of a value that is stored in parts, or quarantined
/// bytes.
public struct StoredItem {
  /// The key that the item is or was stored under; `nil` if it belongs to no single key, such as a quarantined
  /// database.
  ///
  /// If the bytes of a value have lost their id, which is possible only for an id that isn't a part of the value's
  /// name, then `~` and the SHA-256 of the id take its place. The collection is the right one.
  public let key: StoreKeyName?

  private let read: () -> Data

  /// Creates an item.
  ///
  /// - Parameters:
  ///   - key: The key that the item is or was stored under; `nil` if it belongs to no single key.
  ///   - bytes: A function that reads all bytes of the item.
  public init(key: StoreKeyName?, bytes: @escaping () -> Data) {
    self.key = key
    read = bytes
  }

  /// All bytes of the item, as they are stored; empty if they can't be read.
  ///
  /// In the stores of this package, an erasure throws if the closure asks for bytes that can't be read, because the
  /// decision needs them. A quarantined database of more than one gibibyte counts as unreadable.
  ///
  /// - Complexity: O(*b*) for *b* bytes, because each access reads them.
  public var bytes: Data { read() }
}

extension StoredItem {
  /// Returns whether to erase an item, and throws if its bytes were needed and can't be read.
  ///
  /// A decision that was made without the bytes could leave data that should be erased.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - isErased: Returns whether to erase the item.
  ///   - bytes: Reads the bytes of the item.
  static func decide(
    _ key: StoreKeyName?, _ isErased: (StoredItem) -> Bool, bytes: @escaping () throws(SystemError) -> Data
  ) throws(SystemError) -> Bool {
    var failure: SystemError?
    let result = isErased(
      StoredItem(key: key) {
        do throws(SystemError) {
          return try bytes()
        } catch {
          failure = error
          return Data()
        }
      })
    if let failure { throw failure }
    return result
  }

  /// Variant of ``decide(_:_:bytes:)`` for a backend's name of a value, a part or quarantined bytes.
  static func decide(
    name: String, _ keys: StoredItemKeys, _ isErased: (StoredItem) -> Bool,
    bytes: @escaping () throws(SystemError) -> Data
  ) throws(SystemError) -> Bool {
    try decide(keys[name], isErased, bytes: bytes)
  }

  /// Creates an item from a backend's name for a value, a part or quarantined bytes.
  ///
  /// - Parameters:
  ///   - name: The name that a ``StoreBackend`` uses.
  ///   - keys: The keys of the items of the backend.
  ///   - bytes: A function that reads all bytes of the item.
  package init(name: String, keys: StoredItemKeys = StoredItemKeys(), bytes: @escaping () -> Data) {
    self.init(key: keys[name], bytes: bytes)
  }

  /// Returns the encoded key that the name of a part or of quarantined bytes begins with.
  fileprivate static func encodedKey(in name: String) -> String {
    // The separator is looked for first, because no encoded key contains it. The quarantine mark, on the other hand, is
    // in each encoded key whose id begins with `corrupt-`.
    if let separator = name.firstIndex(of: StorePartName.separator) { return String(name[..<separator]) }
    guard let mark = name.range(of: quarantineMark, options: .backwards) else { return name }
    return String(name[..<mark.lowerBound])
  }

  /// Returns a name for quarantined bytes: `<name>.corrupt-<time>`, plus `-<attempt>` from the second attempt on.
  static func quarantineName(for name: String, at time: Date, attempt: Int) -> String {
    let style = Date.ISO8601FormatStyle().year().month().day().dateSeparator(.omitted)
      .time(includingFractionalSeconds: true).timeSeparator(.omitted)
    let suffix = attempt == 1 ? "" : "-\(attempt)"
    return "\(name)\(quarantineMark)\(time.formatted(style))Z\(suffix)"
  }

  /// The text between the original name and the time in the name of quarantined bytes.
  static var quarantineMark: String { ".corrupt-" }
}

/// The keys of a backend's items.
///
/// The name of an item contains its key, unless the id of the key is too long for a name. Then the value contains the
/// id, or the quarantined bytes of the value do, and all items whose names begin with the same digest have the same
/// key.
package struct StoredItemKeys {
  private var keys: [String: StoreKeyName] = [:]

  package init() {}

  /// Records the key of an item whose bytes contain the id that its name lacks.
  ///
  /// - Parameters:
  ///   - name: The backend's name for a value, a part or quarantined bytes.
  ///   - read: Reads the bytes of the item. It is called only if they are needed.
  mutating func add<Failure>(_ name: String, read: () throws(Failure) -> Data) throws(Failure) {
    // A part doesn't contain the id.
    guard LongKeyName.isLong(name), !StorePartName.isPart(name) else { return }
    let encodedKey = LongKeyName(name) == nil ? StoredItem.encodedKey(in: name) : name
    guard let longName = LongKeyName(encodedKey), !hasID(encodedKey) else { return }
    keys[encodedKey] = longName.key(of: try read())
  }

  /// Whether the key with an encoded name was recorded with its id, and not with the placeholder of a lost one.
  private func hasID(_ encodedName: String) -> Bool {
    do throws(StoreError) { return try keys[encodedName]?.encoded() == encodedName } catch { return false }
  }

  /// Returns the key of the item with a name; `nil` if no item has such a name.
  subscript(name: String) -> StoreKeyName? {
    // The name of a part or of quarantined bytes begins with the encoded key, and is never an encoded key itself.
    if let key = StoreKeyName(encoded: name) { return key }
    let encodedKey = LongKeyName(name) == nil ? StoredItem.encodedKey(in: name) : name
    return StoreKeyName(encoded: encodedKey) ?? keys[encodedKey] ?? LongKeyName(encodedKey)?.key(of: Data())
  }
}
