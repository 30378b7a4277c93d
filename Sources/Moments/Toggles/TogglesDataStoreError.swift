public import DataStore
public import Foundation

/// An error thrown by a data store of toggles.
///
/// The toggle is unchanged, with the exceptions that `StoreError` describes.
public enum TogglesDataStoreError: Error, Hashable, Sendable {
  /// The data store doesn't keep toggles of this type; the associated value names the type and the toggle.
  case foreignToggle(String)
  /// The underlying store couldn't read or write the toggle.
  case store(StoreError)
}

extension TogglesDataStoreError: CustomStringConvertible {
  /// A message that says what happened and what to do.
  public var description: String {
    switch self {
    case .foreignToggle(let toggle):
      "This store doesn't keep \(toggle), so the toggle is always off. Use the data store of its type."
    case .store(let error): error.description
    }
  }
}

extension TogglesDataStoreError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}
