public import Foundation

/// Where a ``BackedStore`` keeps its bytes.
///
/// Five functions make a store of your own.
///
/// A backend knows bytes and names, nothing of values, versions or observers. It belongs to one store, which calls it
/// on the store's own thread, one call at a time, so blocking is fine and no locks are needed. Names are those of
/// ``StoreKeyName/encoded()``: harmless as file names, and at most ``StoreKeyName/maximumEncodedLength`` bytes long.
public protocol StoreBackend {
  /// The bytes stored under a name; nil when there are none.
  ///
  /// - Throws: ``StoreError/readFailed(_:)`` when that cannot be said.
  mutating func read(_ name: String) throws(StoreError) -> Data?

  /// Stores bytes under a name: durably when it returns, not at all when it throws.
  ///
  /// - Throws: ``StoreError/writeFailed(_:)``; then the old bytes are intact.
  mutating func write(_ bytes: Data, to name: String) throws(StoreError)

  /// Removes what is stored under a name, durably; does nothing when nothing is.
  ///
  /// - Throws: ``StoreError/removeFailed(_:)``; then the bytes are still there.
  mutating func remove(_ name: String) throws(StoreError)

  /// Moves what is stored under a name out of the way, where it is kept and neither ``read(_:)`` nor ``names()`` finds
  /// it, and where it replaces nothing that was set aside before.
  ///
  /// ``asideName(for:at:attempt:)`` makes good names for the new place.
  ///
  /// - Parameters:
  ///   - name: The name, under which something is stored.
  ///   - time: The present time, to tell when it happened.
  /// - Returns: Where the bytes are now, in words or as a path.
  /// - Throws: ``StoreError/writeFailed(_:)``; then the bytes are where they were.
  mutating func setAside(_ name: String, at time: Date) throws(StoreError) -> String

  /// All names under which something is stored, in any order.
  ///
  /// - Throws: ``StoreError/readFailed(_:)`` when that cannot be said.
  mutating func names() throws(StoreError) -> [String]
}

extension StoreBackend {
  /// A name for bytes that are set aside: `<name>.corrupt-<time>`, which no key encodes to.
  ///
  /// - Parameters:
  ///   - name: The name under which the bytes were stored.
  ///   - time: When it happened.
  ///   - attempt: 1 at first, and one more for each name that was already taken.
  public static func asideName(for name: String, at time: Date, attempt: Int) -> String {
    let style = Date.ISO8601FormatStyle().year().month().day().dateSeparator(.omitted)
      .time(includingFractionalSeconds: true).timeSeparator(.omitted)
    let suffix = attempt == 1 ? "" : "-\(attempt)"
    return "\(name).corrupt-\(time.formatted(style))Z\(suffix)"
  }
}
