public import DataStore

/// Keeps the toggles of the app, ``InternalToggle``, in any `KeyValueStore`.
///
/// Each toggle has a key of its own, so that two processes which switch different ones do not undo each other.
public struct TogglesDataStore<Store: KeyValueStore>: TogglesDataStoreType {
  private let store: Store

  /// Creates a data store that keeps its toggles in `store`.
  public init(_ store: Store) {
    self.store = store
  }

  /// Whether a toggle is on; false for one that was never switched, and for one that is no ``InternalToggle``.
  ///
  /// - Throws: ``TogglesDataStoreError/store(_:)``.
  public func isToggleOn(_ toggle: any ToggleType) async throws(TogglesDataStoreError) -> Bool {
    guard let toggle = toggle as? InternalToggle else { return false }
    do throws(StoreError) {
      return try await store.load(key(of: toggle))?.value ?? false
    } catch {
      throw .store(error)
    }
  }

  /// Switches a toggle.
  ///
  /// When this returns, it is durable.
  ///
  /// - Throws: ``TogglesDataStoreError``, also for one that is no ``InternalToggle``; then nothing has changed.
  public func update(_ toggle: any ToggleType, isOn: Bool) async throws(TogglesDataStoreError) {
    let key = try key(ofAny: toggle)
    do throws(StoreError) {
      try await store.save(isOn, for: key)
    } catch {
      throw .store(error)
    }
  }

  /// Whether a toggle is on, now and after each change, whichever process makes it.
  ///
  /// For one reader, which misses nothing however late it comes; ask again for another. It ends with the store.
  ///
  /// - Throws: ``TogglesDataStoreError``, also for one that is no ``InternalToggle``.
  public func states(
    of toggle: any ToggleType
  ) async throws(TogglesDataStoreError) -> any AsyncSequence<Bool, Never> & Sendable {
    let key = try key(ofAny: toggle)
    do throws(StoreError) {
      let observation = try await store.observe(collection: key.collection, as: Bool.self)
      let present = observation.stored.last?.stored.value ?? false
      return ToggleStates(present: present, changes: observation.changes)
    } catch {
      throw .store(error)
    }
  }

  private func key(ofAny toggle: any ToggleType) throws(TogglesDataStoreError) -> StoreKey<Bool> {
    guard let internalToggle = toggle as? InternalToggle else {
      throw .foreignToggle("\(type(of: toggle)).\(toggle)")
    }
    return key(of: internalToggle)
  }

  private func key(of toggle: InternalToggle) -> StoreKey<Bool> {
    StoreKey("toggle-\(toggle.rawValue)")
  }
}
