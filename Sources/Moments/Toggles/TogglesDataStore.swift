public import DataStore

/// A data store that keeps the app's toggles, ``InternalToggle``, in any `KeyValueStore`.
///
/// Each toggle has its own key, so two processes that update different toggles don't undo each other's updates.
public struct TogglesDataStore<Store: KeyValueStore>: TogglesDataStoreType {
  private let store: Store

  /// Creates a data store.
  ///
  /// - Parameter store: The store that keeps the toggles.
  public init(_ store: Store) {
    self.store = store
  }

  /// Returns whether a toggle is on.
  ///
  /// - Returns: The stored state; `false` if the toggle was never updated, or if it isn't an ``InternalToggle``.
  public func isToggleOn(_ toggle: any ToggleType) async throws(TogglesDataStoreError) -> Bool {
    guard let toggle = toggle as? InternalToggle else { return false }
    do throws(StoreError) {
      return try await store.load(key(of: toggle))?.value ?? false
    } catch {
      throw .store(error)
    }
  }

  /// Turns a toggle on or off.
  ///
  /// - Throws: ``TogglesDataStoreError/foreignToggle(_:)`` if the toggle isn't an ``InternalToggle``, or
  ///   ``TogglesDataStoreError/store(_:)``.
  public func update(_ toggle: any ToggleType, isOn: Bool) async throws(TogglesDataStoreError) {
    let key = try checkedKey(of: toggle)
    do throws(StoreError) {
      try await store.save(isOn, for: key)
    } catch {
      throw .store(error)
    }
  }

  /// Returns the states of a toggle: the current state first, then the state after each change, by any process.
  ///
  /// - Throws: ``TogglesDataStoreError/foreignToggle(_:)`` if the toggle isn't an ``InternalToggle``, or
  ///   ``TogglesDataStoreError/store(_:)``.
  public func states(
    of toggle: any ToggleType
  ) async throws(TogglesDataStoreError) -> any AsyncSequence<Bool, Never> & Sendable {
    let key = try checkedKey(of: toggle)
    do throws(StoreError) {
      let observation = try await store.observe(collection: key.collection, as: Bool.self)
      // The collection of a toggle has at most one value.
      let initial = observation.stored.last?.stored.value ?? false
      return ToggleStates(initial: initial, changes: observation.changes)
    } catch {
      throw .store(error)
    }
  }

  private func checkedKey(of toggle: any ToggleType) throws(TogglesDataStoreError) -> StoreKey<Bool> {
    guard let internalToggle = toggle as? InternalToggle else {
      throw .foreignToggle("\(type(of: toggle)).\(toggle)")
    }
    return key(of: internalToggle)
  }

  private func key(of toggle: InternalToggle) -> StoreKey<Bool> {
    StoreKey("toggle-\(toggle.rawValue)")
  }
}
