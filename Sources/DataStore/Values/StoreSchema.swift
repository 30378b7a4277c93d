public import Foundation

/// A value whose layout changes from one version of the program to another.
///
/// A type that doesn't conform always has schema 1. When a type begins to conform, its earlier layout is schema 1, and
/// the type declares a migration from each schema to the next.
public protocol VersionedValue: Codable, Sendable {
  /// The schema in which values are stored, with the migrations from the older ones.
  ///
  /// Declare it as a `static let`.
  static var schema: StoreSchema { get }
}

/// The version of a value's layout, with the migrations from older layouts.
///
/// A stored value of an older schema is migrated, step by step, each time it is read. The stored bytes remain until the
/// next save replaces them. Until then, nothing is lost by a crash, by a return to an older version of the program, or
/// by a migration that turns out to be wrong.
public struct StoreSchema: Sendable {
  /// The number of the schema, from 1.
  public let version: Int

  let migrations: [StoreMigration]

  /// Creates a schema.
  ///
  /// - Parameters:
  ///   - version: The number of the schema, at least 1.
  ///   - migrations: One migration for each older schema, from 1 to `version - 1`, in this order. With any other list,
  ///     the program stops with a message.
  public init(version: Int, migrations: [StoreMigration] = []) {
    let givenVersions = migrations.map(\.version)
    precondition(version >= 1, "A schema's version is at least 1, not \(version).")
    precondition(
      givenVersions == Array(1..<version),
      "A schema of version \(version) needs one migration from each version before it, in order: "
        + "\(Array(1..<version)), not \(givenVersions).")
    self.version = version
    self.migrations = migrations
  }

  private init(anyVersion: Void) {
    version = .max
    migrations = []
  }

  /// The newest possible schema, for reads that accept values of every schema.
  ///
  /// It needs no migrations, because such reads don't decode the values.
  static let any = StoreSchema(anyVersion: ())

  /// Returns the schema of the values of a type.
  package static func of<Value>(_ type: Value.Type) -> StoreSchema {
    (type as? any VersionedValue.Type)?.schema ?? StoreSchema(version: 1)
  }

  /// The error of a migration.
  package struct MigrationError: Error {
    /// The schema of the value that the migration was to migrate.
    package let version: Int
    package let reason: String
  }

  /// Migrates the JSON of a value to this schema, step by step.
  ///
  /// - Parameters:
  ///   - bytes: The JSON.
  ///   - version: Its schema, from 1 to ``version``.
  package func migrated(_ bytes: Data, from version: Int) throws(MigrationError) -> Data {
    guard version >= 1 else { throw MigrationError(version: version, reason: "there has never been such a schema") }
    var bytes = bytes
    for migration in migrations.dropFirst(version - 1) {
      do {
        bytes = try migration.migrate(bytes)
      } catch {
        throw MigrationError(version: migration.version, reason: String(describing: error))
      }
    }
    return bytes
  }
}

/// A migration of values from one schema to the next.
///
/// It must be deterministic, because a stored value is migrated each time it is read, until a save replaces it.
public struct StoreMigration: Sendable {
  /// The schema of the values to migrate.
  public let version: Int

  let migrate: @Sendable (Data) throws -> Data

  /// Creates a migration of the value's JSON.
  ///
  /// - Parameters:
  ///   - version: The schema of the values to migrate. The result has the next schema.
  ///   - migrate: Returns the new JSON for the old one. An error that it throws becomes the reason of
  ///     ``StoreError/migrationFailed(_:from:reason:)``.
  public init(from version: Int, _ migrate: @escaping @Sendable (Data) throws -> Data) {
    self.version = version
    self.migrate = migrate
  }

  /// Creates a migration from a type of the old schema to a type of the new one.
  ///
  /// - Parameters:
  ///   - version: The schema of the values to migrate. The result has the next schema.
  ///   - type: A type that can be decoded from the old JSON.
  ///   - migrate: Returns a value that encodes to the new JSON. An error that it throws, and an error of decoding or
  ///     encoding, becomes the reason of ``StoreError/migrationFailed(_:from:reason:)``.
  public init<Old: Decodable & SendableMetatype, New: Encodable & SendableMetatype>(
    from version: Int, decoding type: Old.Type, _ migrate: @escaping @Sendable (Old) throws -> New
  ) {
    self.init(from: version) { bytes in
      try JSONEncoder().encode(migrate(JSONDecoder().decode(Old.self, from: bytes)))
    }
  }
}
