import Foundation

@testable import Repository

extension MutationRecord {
  /// Returns the record of a mutation of the repository “notes”, which was never sent.
  static func sample(
    _ mutation: some Codable & Sendable, key: String = "a", lane: String? = nil, sequence: UInt64 = 1,
    madeAt: Date = Date(timeIntervalSinceReferenceDate: 0)
  ) throws -> MutationRecord {
    func makeRecord<Mutation: Codable & Sendable>(_ mutation: Mutation) throws -> MutationRecord {
      try MutationFormat<Mutation>(repository: "notes").makeRecord(
        of: mutation, key: key, lane: LaneID(userID: nil, orderingKey: lane ?? key), madeAt: madeAt)
    }
    return try makeRecord(mutation).with(sequence: sequence)
  }

  /// Returns the mutation, or `nil` if it can't be read.
  func mutation<Mutation: Codable & Sendable>(as type: Mutation.Type) -> Mutation? {
    do throws(UnreadableReason) {
      return try MutationFormat<Mutation>(repository: repository ?? "").decode(self)
    } catch {
      return nil
    }
  }
}
