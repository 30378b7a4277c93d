public import DataStore
public import Multicast
internal import Repository

/// A todo list that is kept in a store.
///
/// Data flows in one direction: edit → store → the store's changes → observers. So screens show only stored lists.
/// An observer first receives the list that is already stored, if there is one.
///
/// - **Ordering**: Edits are made one at a time, in the order of the calls. Observers see each edit once, in that
///   order, unless it leaves the list unchanged. Of the edits of another process, they may see only the newest.
/// - **Durability**: Once an edit returns, it survives a crash or `SIGKILL` of the process if the store's medium does.
///   An edit that throws changes nothing, except as ``TodoListError/store(_:)`` says.
/// - **Several lists** on one store, in one process or in several, have the same items. No edit is lost.
/// - **Cancellation** of a caller doesn't interrupt its edit. The edit runs to completion and reports its result.
/// - **Corrupt bytes** don't stop the program. The store quarantines them, and ``events`` reports it. If a call of
///   ``fetchItems()`` or an edit is the first to find them, it throws ``TodoListError/store(_:)`` with
///   `StoreError.undecodable(_:movedTo:reason:)`. The list is empty afterwards.
/// - **A list that this version of the program can't decode**, because another one has stored it, is left untouched.
///   Every call of ``fetchItems()`` and every edit then throws that error, without a place, and changes nothing.
public actor TodoList {
  /// The key of the list in the store.
  public static let key = StoreKey<TodoItems>("todos")

  private let store: any KeyValueStore
  private let repository: LocalRepository<OnlyKey, TodoItems>

  /// Creates a list.
  ///
  /// - Parameter store: The store that keeps the list.
  public init(store: any KeyValueStore) {
    self.store = store
    repository = LocalRepository(Self.key.collection, default: TodoItems(), store: store)
  }

  /// The events of the store, such as a quarantine of bytes, whether or not a call throws because of them.
  ///
  /// A subscriber receives the last few events first.
  public nonisolated var events: MulticastStream<StoreEvent, Never> { store.events }

  /// Returns the changes of the list: the stored list first, if there is one, then every later change.
  ///
  /// - Throws: A ``TodoListError``, except for undecodable bytes, which ``events`` reports.
  public func changes() async throws(TodoListError) -> MulticastStream<StoreChange<TodoItems>, Never> {
    do throws(StoreError) {
      return try await store.changes(of: Self.key)
    } catch {
      throw .store(error)
    }
  }

  /// Returns the stored list, or an empty list if none is stored.
  ///
  /// - Throws: A ``TodoListError``. Corrupt bytes are reported once, because the list is empty afterwards.
  public func fetchItems() async throws(TodoListError) -> TodoItems {
    do throws(StoreError) {
      return try await repository.value(of: .only)
    } catch {
      throw .store(error)
    }
  }

  /// Appends an item to the list, or replaces the item with the same id.
  ///
  /// - Throws: A ``TodoListError``.
  public func add(_ item: TodoItem) async throws(TodoListError) {
    try await edit { $0.add(item) }
  }

  /// Replaces the item with the same id, at its current position in the list.
  ///
  /// - Throws: A ``TodoListError``; ``TodoListError/noSuchItem(_:)`` if the list has no such item.
  public func update(_ item: TodoItem) async throws(TodoListError) {
    guard try await edit({ $0.update(item) }) else { throw .noSuchItem(item.id) }
  }

  /// Toggles whether an item is finished.
  ///
  /// - Throws: A ``TodoListError``; ``TodoListError/noSuchItem(_:)`` if the list has no such item.
  public func toggle(id: TodoItem.ID) async throws(TodoListError) {
    guard try await edit({ $0.toggle(id) }) else { throw .noSuchItem(id) }
  }

  /// Deletes an item, if there is such an item.
  ///
  /// - Throws: A ``TodoListError``.
  public func delete(id: TodoItem.ID) async throws(TodoListError) {
    try await edit { $0.delete(id) }
  }

  /// Deletes all items.
  ///
  /// - Throws: A ``TodoListError``.
  public func clear() async throws(TodoListError) {
    try await edit { $0.clear() }
  }

  private func edit<Result: Sendable>(
    _ change: @Sendable (inout TodoItems) -> Result
  ) async throws(TodoListError) -> Result {
    do throws(StoreError) {
      return try await repository.update(.only, change)
    } catch {
      throw .store(error)
    }
  }
}
