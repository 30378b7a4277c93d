/// Keeps toggles of one type.
public protocol TogglesDataStoreType: Sendable {
  /// Whether a toggle is on; false for one that was never switched, and for one of a type that is not kept here.
  ///
  /// - Throws: ``TogglesDataStoreError/store(_:)``.
  func isToggleOn(_ toggle: any ToggleType) async throws(TogglesDataStoreError) -> Bool

  /// Switches a toggle.
  ///
  /// When this returns, it is durable.
  ///
  /// - Throws: ``TogglesDataStoreError``, also for a toggle of a type that is not kept here; then nothing has changed.
  func update(_ toggle: any ToggleType, isOn: Bool) async throws(TogglesDataStoreError)

  /// Whether a toggle is on, now and after each change, whichever process makes it.
  ///
  /// For one reader, which misses nothing however late it comes; ask again for another. It ends with the store.
  ///
  /// - Throws: ``TogglesDataStoreError``, also for a toggle of a type that is not kept here: it would never change.
  func states(
    of toggle: any ToggleType
  ) async throws(TogglesDataStoreError) -> any AsyncSequence<Bool, Never> & Sendable
}
