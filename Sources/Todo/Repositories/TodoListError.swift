public import DataStore
public import Foundation

/// An error thrown by a ``TodoList``.
///
/// The list is unchanged, except as ``store(_:)`` says.
public enum TodoListError: Error, Sendable, Hashable {
  /// The list has no item with this id, for example because the item was deleted meanwhile.
  case noSuchItem(TodoItem.ID)

  /// The store couldn't read or write the list.
  ///
  /// The list is unchanged, with two exceptions:
  /// - After `StoreError.undecodable(_:movedTo:reason:)` with a place, or `StoreError.corruptStore(movedTo:reason:)`,
  ///   the list is empty, because its bytes were quarantined.
  /// - After a `StoreError.writeFailed(_:)` of unknown outcome, the edit may have been stored.
  case store(StoreError)
}

extension TodoListError: CustomStringConvertible {
  /// A message that says what happened and what to do.
  public var description: String {
    switch self {
    case .noSuchItem: "The todo is no longer in the list. Add it again if it is still needed."
    case .store(let error): error.description
    }
  }
}

extension TodoListError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}
