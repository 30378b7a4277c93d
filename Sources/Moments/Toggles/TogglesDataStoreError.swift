public import DataStore
public import Foundation

/// Why a toggle could not be read or changed.
///
/// It is what it was before.
public enum TogglesDataStoreError: Error, Hashable, Sendable {
  /// The data store does not keep toggles of this type.
  case foreignToggle(String)
  /// The device could not read or keep it.
  case store(StoreError)
}

extension TogglesDataStoreError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .foreignToggle(let toggle): "\(toggle) is not kept here, and is always off: ask the data store of its type."
    case .store(let error): error.description
    }
  }
}

extension TogglesDataStoreError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}
