internal import DataStore
internal import Foundation

/// The cells of the keys in use, and what is remembered of recently released keys.
///
/// Belongs to one ``SyncEngine`` and is only used in its isolation.
///
/// - Complexity: O(1) for each call, unless stated otherwise. Memory use depends on the number of keys in use, not on
///   the number of keys that were ever used.
final class SyncCells<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias Cell = SyncCell<Source>

  /// The maximum number of released keys whose last fetch is remembered, which bounds the memory.
  ///
  /// Releasing one more key discards what is remembered of all others.
  private static var residueLimit: Int { 4_096 }

  /// The maximum number of ``idleKeys``.
  ///
  /// The cells of these keys stay open, so that an observer that subscribes soon after the last use gets the current
  /// value at once.
  private static var idleLimit: Int { 16 }

  private let channels: SyncChannels<Source>
  private var cells: [Key: Cell] = [:]
  /// The keys in the order in which their cells became idle.
  ///
  /// A key keeps its place when it is used again. The list may contain keys whose cells are needed again or gone.
  private var idleKeys = FIFO<Key>()
  /// The remaining state of keys whose cells were released.
  private var residues: [Key: Cell.Residue] = [:]
  private var invalidations = Invalidations<Key>()

  /// - Parameter channels: The channels of the observers. The cell of an observed key isn't released.
  init(_ channels: SyncChannels<Source>) {
    self.channels = channels
  }

  subscript(key: Key) -> Cell? { cells[key] }

  /// The cells of the keys in use and of recently used keys, in the order of the keys' store ids.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of cells.
  var all: [Cell] { cells.values.sorted { $0.key.storeID < $1.key.storeID } }

  func add(_ cell: Cell) {
    cells[cell.key] = cell
  }

  /// Removes a cell that couldn't be opened, unless another call is about to open it.
  func removeUnopened(_ cell: Cell) {
    if !cell.isOpen, cell.useCount == 0, cells[cell.key] === cell { cells[cell.key] = nil }
  }

  /// Opens the cell of a key.
  ///
  /// - Parameters:
  ///   - cell: The cell of the key.
  ///   - stored: The stored value; `nil` if there is none.
  func open(_ cell: Cell, _ stored: StoredValue<Source.Value>?) {
    let isResidueValid = cell.open(stored, residues.removeValue(forKey: cell.key))
    // A valid residue already says whether the value is stale.
    if !isResidueValid, let stored, invalidations.contains(cell.key, savedAt: stored.savedAt) { cell.invalidate() }
  }

  /// Marks values as stale, including those of keys that aren't in use.
  ///
  /// - Complexity: O(*n*), where *n* is the number of keys in use or remembered; O(1) for a single key.
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

  /// Closes the cells of the selected keys, even if they are needed, and discards what is remembered of these keys.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of keys in use or remembered.
  /// - Returns: The closed cells, in the order of the keys' store ids.
  func close(where isSelected: (Key) -> Bool) -> [Cell] {
    for key in residues.keys where isSelected(key) { residues[key] = nil }
    let closed = all.filter { isSelected($0.key) }
    for cell in closed {
      cells[cell.key] = nil
      cell.close()
    }
    return closed
  }

  /// Adds the key of an idle cell to the idle keys.
  ///
  /// While there are more than ``idleLimit``, removes the oldest key, and releases its cell unless the cell is in use.
  func release(_ cell: Cell) {
    guard cell.isIdle, cells[cell.key] === cell else { return }
    if !cell.isInIdleList {
      cell.isInIdleList = true
      idleKeys.append(cell.key)
    }
    while idleKeys.count > Self.idleLimit, let key = idleKeys.removeFirst() {
      guard let oldest = cells[key] else { continue }
      oldest.isInIdleList = false
      _ = releaseUnlessInUse(oldest)
    }
  }

  /// Releases a cell unless it is in use, and remembers its last fetch.
  ///
  /// Unlike ``close(where:)``, this doesn't mark the cell as closed, which would mean that its user has signed out.
  ///
  /// - Returns: Whether this call released the cell.
  func releaseUnlessInUse(_ cell: Cell) -> Bool {
    guard cell.isIdle, cells[cell.key] === cell, !channels.isObserved(cell.key) else { return false }
    cell.endFollowing?()
    cells[cell.key] = nil
    channels.forgetCurrent(of: cell.key)
    if residues.count >= Self.residueLimit { residues = [:] }
    residues[cell.key] = cell.residue
    return true
  }
}
