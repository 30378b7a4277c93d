internal import DataStore
internal import Foundation

/// The cells of a repository's keys that are in use, and what is remembered of others.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
///
/// - Complexity: O(1) a call, unless it says otherwise. The memory depends on the keys in use, not on those that ever were.
final class SyncCells<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias Cell = SyncCell<Source>

  /// The number of released keys of which the time of the last fetch is remembered.
  private static var residueLimit: Int { 4_096 }

  /// The number of keys that stay open although nothing needs them, so that an observer that comes soon gets all.
  private static var idleLimit: Int { 16 }

  private let channels: SyncChannels<Source>
  private var cells: [Key: Cell] = [:]
  /// The keys whose cells nothing needed when they were used last, the oldest first.
  private var idleKeys = FIFO<Key>()
  /// What is remembered of keys whose cells were released.
  private var residues: [Key: Cell.Residue] = [:]
  private var invalidations = Invalidations<Key>()

  /// - Parameter channels: The observers, which keep their keys' cells.
  init(_ channels: SyncChannels<Source>) {
    self.channels = channels
  }

  subscript(key: Key) -> Cell? { cells[key] }

  /// Whether a key is in use, or its last fetch is remembered.
  func isKnown(_ key: Key) -> Bool { cells[key] != nil || residues[key] != nil }

  /// The cells that are in use, or were a moment ago, in the order of their keys' names.
  ///
  /// - Complexity: O(*n* log *n*) for *n* cells.
  var all: [Cell] { cells.values.sorted { $0.key.storeID < $1.key.storeID } }

  func add(_ cell: Cell) {
    cells[cell.key] = cell
  }

  /// Opens the cell of a key.
  ///
  /// - Parameters:
  ///   - cell: The cell.
  ///   - stored: What is stored.
  func open(_ cell: Cell, _ stored: StoredValue<Source.Value>?) {
    let isKnown = cell.open(stored, residues.removeValue(forKey: cell.key))
    if !isKnown, let stored, invalidations.contains(cell.key, savedAt: stored.savedAt) { cell.invalidate() }
  }

  /// Makes values stale, also of keys that aren't in use.
  ///
  /// - Complexity: O(*n*) for the keys in use and those that are remembered, O(1) for one key.
  func invalidate(_ selection: KeySelection<Key>, at now: Date) {
    invalidations.add(selection, at: now)
    if case .key(let key) = selection {
      cells[key]?.invalidate()
      residues[key]?.invalidate()
    } else {
      for key in residues.keys where selection.contains(key) { residues[key]?.invalidate() }
      for cell in cells.values where selection.contains(cell.key) { cell.invalidate() }
    }
  }

  /// Closes the cells of some keys, whatever needs them, and forgets what is remembered of others.
  ///
  /// - Complexity: O(*n*) for the keys in use and those that are remembered.
  func close(where isClosed: (Key) -> Bool) -> [Cell] {
    for key in residues.keys where isClosed(key) { residues[key] = nil }
    let closed = all.filter { isClosed($0.key) }
    for cell in closed {
      cells[cell.key] = nil
      cell.close()
    }
    return closed
  }

  /// Releases a cell that nothing needs, unless it is one of the last that were used.
  func release(_ cell: Cell) {
    guard cell.isIdle, cells[cell.key] === cell else { return }
    if !cell.isInIdleList {
      cell.isInIdleList = true
      idleKeys.append(cell.key)
    }
    while idleKeys.count > Self.idleLimit, let key = idleKeys.removeFirst() {
      guard let oldest = cells[key] else { continue }
      oldest.isInIdleList = false
      _ = closeIdle(oldest)
    }
  }

  /// Closes a cell unless something needs it.
  ///
  /// - Returns: Whether it is closed.
  func closeIdle(_ cell: Cell) -> Bool {
    guard cell.isIdle, cells[cell.key] === cell, !channels.areObserved(cell.key) else { return false }
    cell.endWatching?()
    cells[cell.key] = nil
    channels.forgetCurrent(of: cell.key)
    if residues.count >= Self.residueLimit { residues = [:] }
    residues[cell.key] = cell.residue
    return true
  }
}
