public import DataStore
public import Foundation

/// Why a ``TodoList`` could not do what it was asked.
///
/// The list is what it was.
public enum TodoListError: Error, Sendable, Hashable {
  /// The item is not in the list: it was deleted meanwhile.
  case noSuchItem(TodoItem.ID)
  /// The device could not read or keep the list.
  case store(StoreError)
}

extension TodoListError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .noSuchItem: "The todo was deleted meanwhile. Add it again if it is still wanted."
    case .store(let error): error.description
    }
  }
}

extension TodoListError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}
