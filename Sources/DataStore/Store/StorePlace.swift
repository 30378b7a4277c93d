internal import Foundation

/// The place where a store keeps its values, which tells whether two stores of one process share them.
package enum StorePlace: Hashable, Sendable {
  /// An object in memory.
  case object(ObjectIdentifier)
  /// A file or a folder, by its absolute path.
  case file(String)
  /// A suite of the user defaults, by its name.
  case userDefaults(String)
  /// A database of a server, by its address.
  case server(String)

  /// Returns whether two places are the same, even if their paths differ in symbolic links.
  package func isSame(as other: StorePlace) -> Bool {
    guard self != other, case .file(let path) = self, case .file(let otherPath) = other else { return self == other }
    return Self.resolved(path) == Self.resolved(otherPath)
  }

  private static func resolved(_ path: String) -> String {
    URL(filePath: path).resolvingSymlinksInPath().path(percentEncoded: false)
  }
}

/// A store that knows its place.
package protocol PlacedStore: KeyValueStore {
  var place: StorePlace { get }
}

/// A backend that knows its place.
package protocol PlacedBackend: StoreBackend {
  var place: StorePlace { get }
}

extension StorePlace {
  /// Returns the place of a store; `nil` if it isn't known.
  ///
  /// The place of a store that forwards its calls is that of the other store. Otherwise, an object whose place isn't
  /// known is its own place.
  package static func of(_ store: some KeyValueStore) -> StorePlace? {
    switch store {
    case let store as any PlacedStore: return store.place
    case let store as any WrappingStore: return of(store.base)
    case let store as any ForwardingStore: return of(store.base)
    default: return store.baseObject.map { .object(ObjectIdentifier($0)) }
    }
  }
}

extension KeyValueStore {
  /// The object that performs the calls of the store, which may forward them; `nil` if that isn't an object.
  package var baseObject: AnyObject? {
    switch self {
    case let store as any WrappingStore: store.base.baseObject
    case let store as any ForwardingStore: store.base.baseObject
    default: type(of: self) is AnyClass ? self as AnyObject : nil
    }
  }
}
