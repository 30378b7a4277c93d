internal import DataStore
internal import Foundation
internal import Multicast

/// One of the stores of Moments.
struct StoreSystem: StorageSystem {
  /// The stores that are compared with GRDB.
  enum Kind: CaseIterable {
    case file, sqlite

    var label: String {
      switch self {
      case .file: SystemName.file.label
      case .sqlite: SystemName.sqlite.label
      }
    }

    func open(in folder: URL) -> any KeyValueStore {
      switch self {
      case .file: FileStore(folder: folder.appending(path: "store", directoryHint: .isDirectory))
      case .sqlite: SQLiteStore(file: folder.appending(path: "store.sqlite", directoryHint: .notDirectory))
      }
    }
  }

  private static let collection = "timeline"

  private let store: any KeyValueStore

  init(_ kind: Kind, in folder: URL) {
    store = kind.open(in: folder)
  }

  func save(_ timeline: Timeline, as id: String) async throws {
    try await store.save(timeline, for: Self.key(id))
  }

  func save(_ timelines: [(id: String, timeline: Timeline)]) async throws {
    var batch = StoreBatch()
    for (id, timeline) in timelines { batch.save(timeline, for: Self.key(id)) }
    try await store.commit(batch)
  }

  func load(_ id: String) async throws -> Timeline? {
    try await store.load(Self.key(id))?.value
  }

  func observe(_ id: String) async throws -> Observation<Timeline> {
    let changes = try await store.changes(of: Self.key(id))
    let arrivalSlot = HandOffSlot<Observation<Timeline>.Arrival>()
    let observer = Task {
      for await change in changes {
        if let stored = change.stored { arrivalSlot.put(.success(.init(stored.value))) }
      }
    }
    return Observation(arrivalSlot: arrivalSlot, cancel: { observer.cancel() })
  }

  func observeAll() async throws -> Observation<[Timeline]> {
    let storeObservation = try await store.observe(collection: Self.collection, as: Timeline.self)
    let arrivalSlot = HandOffSlot<Observation<[Timeline]>.Arrival>()
    arrivalSlot.put(.success(.init(storeObservation.stored.map(\.stored.value))))
    let observer = Task {
      for await changes in storeObservation.changes {
        arrivalSlot.put(.success(.init(changes.compactMap(\.stored?.value))))
      }
    }
    return Observation(arrivalSlot: arrivalSlot, cancel: { observer.cancel() })
  }

  func close() {}

  private static func key(_ id: String) -> StoreKey<Timeline> { StoreKey(collection, id: id) }
}
