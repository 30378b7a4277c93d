public import DataStore
public import Multicast
internal import Repository

/// The list of things to do, kept in a store.
///
/// A value goes one way: an edit → the store → the store's changes → the observers. So what is on the screens is what
/// is stored, and what was stored before the list existed reaches observers first.
///
/// - **Ordering**: Edits are made one at a time, in the order the calls arrive. Observers see each once, in that order.
/// - **Durability**: An edit that returned survives the end of the process, as far as the store's medium does. One that
///   threw changed nothing.
/// - **Several lists** may be on one store, also in several processes: no edit is lost.
/// - **Cancellation** doesn't interrupt an edit: one that began runs to completion and reports its result.
/// - **Corrupt bytes** never stop the program: the store quarantines them, ``events`` reports it, the first call of
///   ``fetchItems()`` or of an edit that finds them throws `StoreError.undecodable(_:movedTo:reason:)`, and the list is
///   empty from then on.
public actor TodoList {
  /// Where the list is kept.
  public static let key = StoreKey<TodoItems>("todos")

  private let store: any KeyValueStore
  private let items: LocalRepository<OnlyKey, TodoItems>

  /// Creates a list in a store.
  public init(store: any KeyValueStore) {
    self.store = store
    items = LocalRepository(Self.key.collection, default: TodoItems(), store: store)
  }

  /// What the store reports although no call failed for it, such as bytes that were quarantined.
  ///
  /// A subscriber gets the last few events first.
  public nonisolated var events: MulticastStream<StoreEvent, Never> { store.events }

  /// The stored list first, if there is one, then every change of it.
  ///
  /// - Throws: ``TodoListError``, but never for undecodable bytes: for those see ``events``.
  public func changes() async throws(TodoListError) -> MulticastStream<StoreChange<TodoItems>, Never> {
    do throws(StoreError) {
      return try await store.changes(of: Self.key)
    } catch {
      throw .store(error)
    }
  }

  /// The list as it is stored now, for the caller alone: no observer sees anything.
  ///
  /// - Throws: ``TodoListError``; for undecodable bytes once, and the list is empty from then on.
  public func fetchItems() async throws(TodoListError) -> TodoItems {
    do throws(StoreError) {
      return try await items.value(of: .only)
    } catch {
      throw .store(error)
    }
  }

  /// Puts an item at the end of the list.
  ///
  /// - Throws: ``TodoListError``.
  public func add(_ item: TodoItem) async throws(TodoListError) {
    try await edit { $0.add(item) }
  }

  /// Puts an item in the place of the one with its id, wherever in the list that is by now.
  ///
  /// - Throws: ``TodoListError``; ``TodoListError/noSuchItem(_:)`` where it was deleted.
  public func update(_ item: TodoItem) async throws(TodoListError) {
    guard try await edit({ $0.update(item) }) else { throw .noSuchItem(item.id) }
  }

  /// Finishes an item, or begins it again.
  ///
  /// - Throws: ``TodoListError``; ``TodoListError/noSuchItem(_:)`` where it was deleted.
  public func toggle(id: TodoItem.ID) async throws(TodoListError) {
    guard try await edit({ $0.toggle(id) }) else { throw .noSuchItem(id) }
  }

  /// Deletes an item, if there is such an item.
  ///
  /// - Throws: ``TodoListError``.
  public func delete(id: TodoItem.ID) async throws(TodoListError) {
    try await edit { $0.delete(id) }
  }

  /// Deletes all items, if there are any.
  ///
  /// - Throws: ``TodoListError``.
  public func clear() async throws(TodoListError) {
    try await edit { $0.clear() }
  }

  private func edit<Result: Sendable>(
    _ change: @Sendable (inout TodoItems) -> Result
  ) async throws(TodoListError) -> Result {
    do throws(StoreError) {
      return try await items.update(.only, change)
    } catch {
      throw .store(error)
    }
  }
}
