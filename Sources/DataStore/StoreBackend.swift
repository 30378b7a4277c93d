public import Foundation

/// Where a ``BackedStore`` keeps its bytes.
///
/// Five functions make a store of your own; two more make it see what others change.
///
/// A backend knows bytes and names, nothing of values, versions or observers. It belongs to one store, which calls it
/// on the store's own thread, one call at a time, so blocking is fine and no locks are needed. Names are those of
/// ``StoreKeyName/encoded()``: harmless as file names, and at most ``StoreKeyName/maximumEncodedLength`` bytes long.
///
/// Others may use the same place at the same time: other processes, or other stores in this one. Whatever they do, each
/// call finds either all of some bytes or none.
///
/// Where one damage can spoil everything, as it can in a database, each call may throw
/// ``StoreError/damaged(movedTo:reason:)``: once, when everything has been moved aside and nothing is stored any more.
public protocol StoreBackend: SendableMetatype {
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

  /// Moves bytes out of the way, where they are kept and neither ``read(_:)`` nor ``names()`` finds them, and where they
  /// replace none that were set aside before.
  ///
  /// ``asideName(for:at:attempt:)`` makes good names for the new place.
  ///
  /// - Parameters:
  ///   - bytes: What ``read(_:)`` found under the name.
  ///   - name: The name.
  ///   - time: The present time, to tell when it happened.
  /// - Returns: Where the bytes are now, in words or as a path; nil when somebody else has changed meanwhile what is
  ///   stored under the name, which then stays.
  /// - Throws: ``StoreError/writeFailed(_:)`` or ``StoreError/readFailed(_:)``; then the bytes are where they were.
  mutating func setAside(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String?

  /// All names under which something is stored, in any order.
  ///
  /// - Throws: ``StoreError/readFailed(_:)`` when that cannot be said.
  mutating func names() throws(StoreError) -> [String]

  /// Begins to watch what others change. Without an implementation, nothing is watched.
  ///
  /// Called before the first value is observed, and not again once it has returned, unless ``takeOutsideChanges()``
  /// throws. What others change from then on is told by ``takeOutsideChanges()``. The watch ends with the backend.
  ///
  /// - Parameter onChange: Asks the store to call ``takeOutsideChanges()`` soon. It may be called from any thread, takes
  ///   little time, and does not keep the store alive. Calling it in vain does no harm.
  /// - Throws: ``StoreError/readFailed(_:)`` when changes cannot be watched now.
  mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError)

  /// What others may have changed or removed since the last call.
  ///
  /// No change may be left out. Names that nobody changed may be told, and so may the store's own changes: the store
  /// looks at what is there and sends only what is news. To leave them out saves it the look.
  ///
  /// - Throws: ``StoreError/readFailed(_:)`` when the watch is broken. The store tells it as an event, and begins a new
  ///   watch.
  mutating func takeOutsideChanges() throws(StoreError) -> OutsideChanges
}

/// What others may have changed where a ``StoreBackend`` keeps its bytes.
public enum OutsideChanges: Hashable, Sendable {
  /// What is stored under these names; none at all when nothing was changed.
  case names([String])

  /// It cannot be said what: anything.
  case unknown
}

extension StoreBackend {
  /// Watches nothing.
  public mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {}

  /// Knows of no changes.
  public mutating func takeOutsideChanges() throws(StoreError) -> OutsideChanges { .names([]) }

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
