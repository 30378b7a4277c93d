/// Edits that the server has not stored yet, laid over what it has.
///
/// Observers see ``value(over:)``: the stored value with all remaining edits applied in the order they were made, so an
/// edit shows at once, and again on every newer stored value. An edit stays until the stored value that contains it
/// has arrived, so that it never disappears in between; a refused one goes at once.
///
/// The life of an edit whose mutation was confirmed has one of two ways, told by the ``VersionGuard``:
/// 1. Its reply was accepted and saved: ``confirm(_:savedAs:)``. The edit goes with the arrival of that save.
/// 2. Its reply was not accepted: ``confirm(_:at:)``. Any value asked for after that moment contains the change; the
///    first one that is saved, ``saved(_:requestedAt:)``, is the one with whose arrival the edit goes.
///
/// Revisions are those of the store, as in `StoredValue.revision`. An arrival may be told before the save that caused
/// it: stores publish first.
///
/// An edit that must survive a relaunch is made from its mutation: add the edits of the entries of the
/// ``MutationQueue`` again before the first value is shown.
public struct PendingEdits<Value, ID: Hashable & Sendable>: Sendable {
  /// Changes a value.
  ///
  /// It may be applied any number of times, also to a value that has the change already.
  public typealias Edit = @Sendable (inout Value) -> Void

  private enum Status {
    case pending
    /// Every value requested after this moment contains the edit.
    case confirmed(at: VersionGuard.Ticket)
    /// Every value from this revision on contains the edit.
    case saved(revision: UInt64)
  }

  private struct PendingEdit {
    let id: ID
    var edit: Edit
    var status: Status
  }

  private var edits: [PendingEdit] = []
  private var arrivedRevision: UInt64 = 0

  /// Creates a collection without edits.
  public init() {}

  /// Whether there are no edits.
  public var isEmpty: Bool { edits.isEmpty }

  /// How many edits there are.
  public var count: Int { edits.count }

  /// The edits that remain, in the order they are applied.
  public var ids: [ID] { edits.map(\.id) }

  /// The edits that the server has confirmed without a value that is known to contain them: fetch one.
  public var idsThatNeedAFetch: [ID] {
    edits.compactMap { if case .confirmed = $0.status { $0.id } else { nil } }
  }

  /// Whether a stored value is known to contain an edit: the edit is gone, or waits for the arrival of that value.
  public func isSaved(_ id: ID) -> Bool {
    guard let edit = edits.first(where: { $0.id == id }) else { return true }
    if case .saved = edit.status { return true } else { return false }
  }

  /// A stored value with all remaining edits applied, in the order they were made.
  public func value(over stored: Value) -> Value {
    var value = stored
    for edit in edits { edit.edit(&value) }
    return value
  }

  /// Adds an edit on top of the others.
  ///
  /// - Parameters:
  ///   - id: Names the edit. One that is there under the same id gives way to it.
  ///   - edit: The change.
  public mutating func add(_ id: ID, _ edit: @escaping Edit) {
    remove(id)
    edits.append(PendingEdit(id: id, edit: edit, status: .pending))
  }

  /// Takes back an edit that the server refused or the user cancelled.
  ///
  /// - Returns: Whether it was there.
  @discardableResult
  public mutating func refuse(_ id: ID) -> Bool {
    remove(id)
  }

  /// The server has made the change, and its reply was saved: the edit goes when that revision has arrived.
  public mutating func confirm(_ id: ID, savedAs revision: UInt64) {
    setStatus(.saved(revision: revision), of: id)
    removeArrived()
  }

  /// The server has made the change, but its reply was too old to be saved.
  ///
  /// - Parameters:
  ///   - id: The edit.
  ///   - moment: A ticket drawn when the reply arrived; what is requested after it contains the change.
  public mutating func confirm(_ id: ID, at moment: VersionGuard.Ticket) {
    setStatus(.confirmed(at: moment), of: id)
  }

  /// An accepted reply was saved.
  ///
  /// - Parameters:
  ///   - revision: The revision it has in the store.
  ///   - ticket: The ticket of its request.
  public mutating func saved(_ revision: UInt64, requestedAt ticket: VersionGuard.Ticket) {
    for index in edits.indices {
      if case .confirmed(let moment) = edits[index].status, moment < ticket {
        edits[index].status = .saved(revision: revision)
      }
    }
    removeArrived()
  }

  /// A stored value has arrived, and is what ``value(over:)`` is about to be asked for: edits it contains go.
  public mutating func arrived(_ revision: UInt64) {
    arrivedRevision = max(arrivedRevision, revision)
    removeArrived()
  }

  private mutating func setStatus(_ status: Status, of id: ID) {
    guard let index = edits.firstIndex(where: { $0.id == id }) else { return }
    edits[index].status = status
  }

  private mutating func removeArrived() {
    edits.removeAll { if case .saved(let revision) = $0.status { revision <= arrivedRevision } else { false } }
  }

  @discardableResult
  private mutating func remove(_ id: ID) -> Bool {
    guard let index = edits.firstIndex(where: { $0.id == id }) else { return false }
    edits.remove(at: index)
    return true
  }
}
