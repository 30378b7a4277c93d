internal import DataStore
internal import Foundation
internal import Synchronization

/// Any value of any version, of which nothing is decoded.
private struct AnyStored: VersionedValue {
  static let schema = StoreSchema(version: 2, migrations: [StoreMigration(from: 1) { $0 }])

  init(from decoder: any Decoder) {}

  func encode(to encoder: any Encoder) {}
}

/// Prints what a store holds for the editors, whatever their version.
///
/// - `record ID`: the record of an edit
/// - `stored ISSUE`: the value of an issue
/// - `quarantined KEY COUNT`: bytes in the quarantine
func inspect(_ store: any KeyValueStore) async throws {
  let itemCounts = Mutex<[StoreKeyName?: Int]>([:])
  // Selects nothing, so that nothing is erased.
  try await store.erase { item in
    itemCounts.withLock { $0[item.key, default: 0] += 1 }
    return false
  }
  var counts = itemCounts.withLock { $0 }
  let parts = ["", ".mutations", ".mutation-counter", ".mutation-withdrawals", ".users"]
  for collection in parts.map({ "screens\($0)" }) {
    for entry in try await store.observe(collection: collection, as: AnyStored.self).stored {
      if collection == "screens.mutations" { say(["record", entry.key.id ?? ""]) }
      if collection == "screens" { say(["stored", entry.key.id ?? ""]) }
      counts[entry.key.keyName, default: 0] -= 1
    }
  }
  for (key, count) in counts where count != 0 { say(["quarantined", key.map { "\($0)" } ?? "–", "\(count)"]) }
}

/// Prints words as a line to standard output, unbuffered.
func say(_ words: [String]) {
  FileHandle.standardOutput.write(Data((words.joined(separator: " ") + "\n").utf8))
}
