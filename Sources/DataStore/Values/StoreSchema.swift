public import Foundation

/// A value whose layout changes from one version of the program to another.
///
/// Types that don't conform have schema 1 for ever. A type that begins to conform declares what its values looked like
/// before (schema 1) and how each schema becomes the next.
public protocol VersionedValue: Codable, Sendable {
  /// The schema in which values are stored, and the migrations from each older one.
  ///
  /// Declare it as a `static let`.
  static var schema: StoreSchema { get }
}

/// The number of a value's layout, and how values of older layouts become values of it.
///
/// A stored value of an older schema is migrated, step by step, each time it is read. The stored bytes remain until the
/// next save replaces them, so nothing is lost by a crash in between, by a return to an older version of the program, or
/// by a step that turns out to be wrong.
public struct StoreSchema: Sendable {
  /// The number of the schema, from 1.
  public let version: Int

  let migrations: [StoreMigration]

  /// Creates a schema.
  ///
  /// - Parameters:
  ///   - version: The number of the schema, at least 1.
  ///   - migrations: One for each older schema, from 1 to `version - 1`, in this order. If one is missing, the
  ///     program stops with a message.
  public init(version: Int, migrations: [StoreMigration] = []) {
    let found = migrations.map(\.version)
    precondition(version >= 1, "A schema's version is at least 1, not \(version).")
    precondition(
      found == Array(1..<version),
      "A schema of version \(version) needs one migration from each version before it, in order: "
        + "\(Array(1..<version)), not \(found).")
    self.version = version
    self.migrations = migrations
  }

  private init(anyVersion: Void) {
    version = .max
    migrations = []
  }

  /// Newer than every schema.
  static let any = StoreSchema(anyVersion: ())

  /// The schema of a type's values.
  static func of<Value>(_ type: Value.Type) -> StoreSchema {
    (type as? any VersionedValue.Type)?.schema ?? StoreSchema(version: 1)
  }
}

/// How a value of one schema becomes a value of the next.
///
/// Equal values must become equal values, because a value is migrated each time it is read until it is saved.
public struct StoreMigration: Sendable {
  /// The schema it starts from.
  public let version: Int

  let migrate: @Sendable (Data) throws -> Data

  /// Creates a migration of the value's JSON.
  ///
  /// - Parameters:
  ///   - version: The schema it starts from; it leads to the next one.
  ///   - migrate: Returns the new JSON for the old. An error that it throws becomes the reason of
  ///     ``StoreError/migrationFailed(_:from:reason:)``.
  public init(from version: Int, _ migrate: @escaping @Sendable (Data) throws -> Data) {
    self.version = version
    self.migrate = migrate
  }

  /// Creates a migration by the types of the two schemas.
  ///
  /// - Parameters:
  ///   - version: The schema it starts from; it leads to the next one.
  ///   - type: A type that the older JSON decodes to.
  ///   - migrate: Makes a value that encodes to the newer JSON.
  public init<Old: Decodable & SendableMetatype, New: Encodable & SendableMetatype>(
    from version: Int, decoding type: Old.Type, _ migrate: @escaping @Sendable (Old) throws -> New
  ) {
    self.init(from: version) { bytes in
      try JSONEncoder().encode(migrate(JSONDecoder().decode(Old.self, from: bytes)))
    }
  }
}

/// A step of a migration that failed.
struct MigrationFailure {
  /// The schema that the step starts from.
  let version: Int
  let reason: String

  var description: String { "the migration from schema \(version) failed: \(reason)" }
}
