internal import Foundation

/// What a look at a key found.
enum Finding<Value: Sendable> {
  case nothing
  case value(StoredValue<Value>)
  /// A newer program's value; `isNews` unless the last look found the same.
  case newer(StoredVersion, isNews: Bool)
  /// A value of an older schema, which stays where it is because a migration failed.
  case unmigratable(bytes: Data, MigrationFailure, isNews: Bool)
  /// The bytes have been moved aside, and the event is sent.
  case undecodable(movedTo: String, reason: String)
}
