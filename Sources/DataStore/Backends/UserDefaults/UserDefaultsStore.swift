public import Foundation

/// A store in the user defaults, for a few small values such as settings.
///
/// - **Durability** is that of the platform's user defaults: the system is asked to write before a save returns, but
///   promises less than ``FileStore`` at a loss of power.
/// - **Atomicity**: All changes of a commit are handed to the system together, and a process that is killed leaves all or
///   none. User defaults have no lock: a precondition holds against all stores of this process, but another process may
///   change the value in the instant between the comparison and the change.
/// - **External changes** are noticed by the next call, as soon as the platform shows them. They aren't watched:
///   `UserDefaults.didChangeNotification` reports changes of this process only, and key-value observing takes the dots in
///   the keys for paths.
public struct UserDefaultsStore: StoreFacade {
  package let base: BackedStore<UserDefaultsBackend>

  /// Creates a store in a suite of the user defaults.
  ///
  /// It uses only keys that begin with `DataStore.`.
  ///
  /// - Parameters:
  ///   - suiteName: The suite. Where the system has no suite of that name, each call throws a ``StoreError``.
  ///   - now: Returns the present time, for ``StoredValue/savedAt``.
  public init(suiteName: String, now: @escaping @Sendable () -> Date = { Date() }) {
    base = BackedStore(backend: UserDefaultsBackend(suiteName: suiteName), now: now)
  }

  /// Erases what is kept of some keys, so that nothing of it is left.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await base.erase(where: isErased)
  }
}
