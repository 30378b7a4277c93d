public import Foundation

/// A store in the user defaults, for a few small values such as settings.
///
/// - **Durability** is that of the platform's user defaults. Before a save returns, the store asks the system to write
///   the value. But after a loss of power the system guarantees less than ``FileStore`` does.
/// - **Atomicity**: The store sets all changes of a commit, one after the other, and then asks the system to write
///   them. A process that is killed leaves all changes or none, unless the system has written some of them before it
///   was asked. User defaults have no lock, so a precondition holds only against the stores of this process: another
///   process may change the value after the store has checked the precondition.
/// - **External changes** by other stores of this process are noticed without a call while the store is observed, and
///   on Apple's systems so are those by other code of this process. Changes by another process are noticed by the next
///   call after the platform makes them visible. They aren't watched, because `UserDefaults.didChangeNotification`
///   reports only changes of this process, and key-value observing interprets the dots in the keys as key paths.
public struct UserDefaultsStore: WrappingStore {
  package let base: BackedStore<UserDefaultsBackend>

  /// Creates a store in a suite of the user defaults.
  ///
  /// The store uses only keys that begin with `DataStore.`.
  ///
  /// - Parameters:
  ///   - suiteName: The name of the suite. If the system can't open a suite of that name, each call that reads or
  ///     changes values throws a ``StoreError``.
  ///   - now: Returns the current time, for ``StoredValue/savedAt`` and the names of quarantined bytes.
  public init(suiteName: String, now: @escaping @Sendable () -> Date = { Date() }) {
    base = BackedStore(backend: UserDefaultsBackend(suiteName: suiteName), now: now)
  }

  /// Erases items so that no trace of them is left in the suite.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await base.erase(where: isErased)
  }
}
