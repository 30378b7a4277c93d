/// A data store that keeps toggles of one type.
public protocol TogglesDataStoreType: Sendable {
  /// Returns whether a toggle is on.
  ///
  /// - Returns: The stored state; `false` if the toggle was never updated, or if it is of another type.
  /// - Throws: ``TogglesDataStoreError/store(_:)``.
  func isToggleOn(_ toggle: any ToggleType) async throws(TogglesDataStoreError) -> Bool

  /// Turns a toggle on or off.
  ///
  /// When the call returns, the change is durable.
  ///
  /// - Throws: ``TogglesDataStoreError/foreignToggle(_:)`` if the toggle is of another type, or
  ///   ``TogglesDataStoreError/store(_:)``.
  func update(_ toggle: any ToggleType, isOn: Bool) async throws(TogglesDataStoreError)

  /// Returns the states of a toggle: the current state first, then the state after each change, by any process.
  ///
  /// The sequence serves one subscriber, which receives the changes since the call, however late it begins to iterate.
  /// If several changes are noticed together, only the state after the last one arrives. Call the method again for
  /// another subscriber. The sequence finishes when the store that keeps the toggles is released.
  ///
  /// - Throws: ``TogglesDataStoreError/foreignToggle(_:)`` if the toggle is of another type, because its state would
  ///   never change, or ``TogglesDataStoreError/store(_:)``.
  func states(
    of toggle: any ToggleType
  ) async throws(TogglesDataStoreError) -> any AsyncSequence<Bool, Never> & Sendable
}
