internal import DataStore
internal import Foundation

/// Encodes and decodes the mutations of one type, as their records store them.
struct MutationFormat<Mutation: Codable & Sendable>: Sendable {
  private let schema = StoreSchema.of(Mutation.self)
  private let repository: String

  /// - Parameter repository: The name of the repository.
  init(repository: String) {
    self.repository = repository
  }

  /// Returns the record of a new mutation.
  ///
  /// - Throws: The error of the mutation's `encode(to:)`, or `EncodingError`.
  func makeRecord(
    of mutation: Mutation, key: some RepositoryKey, lane: LaneID, madeAt time: Date
  ) throws -> MutationRecord {
    MutationRecord(
      repository: repository, key: key.storeID, user: UserDigest(key.userID), lane: lane.orderingKey, madeAt: time,
      schema: schema.version, mutation: String(decoding: try JSONEncoder().encode(mutation), as: UTF8.self))
  }

  /// Returns the mutation of a record.
  func decode(_ record: MutationRecord) throws(UnreadableReason) -> Mutation {
    guard record.format <= MutationRecord.newestFormat else { throw .futureFormat(record.format) }
    if let problem = record.problem { throw .undecodable(problem) }
    guard record.madeAt != nil, record.keys.count == 1, record.repository ?? repository == repository else {
      throw .undecodable("the record has the keys \(record.keys) of \(record.repository ?? repository)")
    }
    guard record.schema <= schema.version else { throw .futureSchema(record.schema, supported: schema.version) }
    let bytes = Data(record.mutation.utf8)
    // Version 0.1.0 stored no schema, so its records may have the present one.
    if record.format == 0, let mutation = try? JSONDecoder().decode(Mutation.self, from: bytes) { return mutation }
    do {
      return try JSONDecoder().decode(Mutation.self, from: schema.migrated(bytes, from: record.schema))
    } catch let error as StoreSchema.MigrationError {
      throw .unmigratable(from: error.version, error.reason)
    } catch {
      throw .undecodable(String(describing: error))
    }
  }
}

/// The reason why a program can't read a stored mutation.
enum UnreadableReason: Error, Hashable {
  case futureFormat(Int)
  case futureSchema(Int, supported: Int)
  /// The migration of this schema failed.
  case unmigratable(from: Int, String)
  case undecodable(String)
  /// The key isn't one of this program's.
  case unknownKey(String)
}

extension UnreadableReason: CustomStringConvertible {
  var description: String {
    switch self {
    case .futureFormat(let format):
      "the record has format \(format), and this program knows formats up to \(MutationRecord.newestFormat)"
    case .futureSchema(let schema, let supported):
      "the mutation has schema \(schema), and this program knows schemas up to \(supported)"
    case .unmigratable(let schema, let reason): "the migration of schema \(schema) failed: \(reason)"
    case .undecodable(let reason): "the mutation can't be decoded: \(reason)"
    case .unknownKey(let key): "this program doesn't know the key \(key)"
    }
  }
}
