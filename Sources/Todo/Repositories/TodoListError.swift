public import DataStore
public import Foundation

/// An error thrown by a ``TodoList``.
///
/// The list is unchanged.
public enum TodoListError: Error, Sendable, Hashable {
  /// The item isn't in the list, because it was deleted meanwhile.
  case noSuchItem(TodoItem.ID)
  /// The store couldn't read or write the list.
  case store(StoreError)
}

extension TodoListError: CustomStringConvertible {
  /// A sentence that says what happened and what to do.
  public var description: String {
    switch self {
    case .noSuchItem: "The todo was deleted meanwhile. Add it again if it is still needed."
    case .store(let error): error.description
    }
  }
}

extension TodoListError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}
