/// A pure state machine that decides for ``SharedRequests`` which caller starts, joins or cancels a request.
struct SharedRequestsState<Key: Hashable & Sendable, Request: Sendable> {
  private struct Entry {
    let number: UInt64
    let request: Request
    /// The number of callers, at least 1: a request is forgotten in the step in which its last caller leaves.
    var callers: Int
    /// The highest priority of the callers, including those that have left.
    var priority: TaskPriority
  }

  private var entries: [Key: Entry] = [:]
  private var lastNumber: UInt64 = 0

  /// The place of a caller in a request.
  struct Place: Sendable {
    let request: Request
    /// The unique number of the request.
    let number: UInt64
    /// The number of callers that wait for the request, this one included.
    let callers: Int

    /// Whether the caller must start the request.
    ///
    /// A caller that joins a request isn't its only caller, so the only caller is the one that must start it.
    var isFirst: Bool { callers == 1 }
  }

  /// Records that a caller of a given priority asks for a key.
  mutating func join(_ key: Key, priority: TaskPriority, makeRequest: () -> Request) -> Place {
    var entry: Entry
    if let existing = entries[key] {
      entry = existing
      entry.callers += 1
      entry.priority = max(entry.priority, priority)
    } else {
      lastNumber += 1
      entry = Entry(number: lastNumber, request: makeRequest(), callers: 1, priority: priority)
    }
    entries[key] = entry
    return Place(request: entry.request, number: entry.number, callers: entry.callers)
  }

  /// Returns whether a caller waits for a request.
  func isWanted(_ key: Key, number: UInt64) -> Bool { entries[key]?.number == number }

  /// Whether a caller waits for a request of a key.
  func isRequested(_ key: Key) -> Bool { entries[key] != nil }

  /// Returns the highest priority of a request's callers, or `nil` if no caller waits for the request.
  func priority(_ key: Key, number: UInt64) -> TaskPriority? {
    guard let entry = entries[key], entry.number == number else { return nil }
    return entry.priority
  }

  /// The action that is required after a caller has left.
  enum LeaveAction {
    /// Other callers still wait, or the request has completed or was removed.
    case nothing
    /// The last caller has left: the request is forgotten and must be cancelled.
    case cancel
  }

  /// Records that a caller leaves, with or without a value.
  mutating func leave(_ key: Key, number: UInt64) -> LeaveAction {
    guard var entry = entries[key], entry.number == number else { return .nothing }
    entry.callers -= 1
    if entry.callers > 0 {
      entries[key] = entry
      return .nothing
    }
    entries[key] = nil
    return .cancel
  }

  /// Forgets the requests for the selected keys, and returns them for ``SharedRequests`` to cancel and complete.
  mutating func remove(where shouldRemove: (Key) -> Bool) -> [Request] {
    let removed = entries.filter { shouldRemove($0.key) }.sorted { $0.value.number < $1.value.number }
    for (key, _) in removed { entries[key] = nil }
    return removed.map(\.value.request)
  }

  /// Records that a request has completed, whether or not callers still wait.
  ///
  /// A later caller starts another request.
  ///
  /// - Returns: Whether a caller waited. `false` if the request had been cancelled or removed.
  mutating func finish(_ key: Key, number: UInt64) -> Bool {
    guard entries[key]?.number == number else { return false }
    entries[key] = nil
    return true
  }
}
