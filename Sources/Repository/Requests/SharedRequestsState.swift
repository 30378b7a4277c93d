/// Who waits for which request: the decisions of ``SharedRequests``, without tasks, locks or time.
struct SharedRequestsState<Key: Hashable & Sendable, Request: Sendable> {
  private struct Entry {
    let number: UInt64
    let request: Request
    /// At least 1: a request without callers is forgotten in the step that takes the last one.
    var callers: Int
  }

  private var entries: [Key: Entry] = [:]
  private var lastNumber: UInt64 = 0

  /// A caller's place in a request.
  struct Place: Sendable {
    let request: Request
    /// Which of all requests it is.
    let number: UInt64
    /// How many wait for it now, this caller included.
    let callers: Int

    /// Whether the caller must start the request: who joins finds at least one other.
    var isFirst: Bool { callers == 1 }
  }

  /// A caller comes.
  mutating func join(_ key: Key, makeRequest: () -> Request) -> Place {
    var entry: Entry
    if let existing = entries[key] {
      entry = existing
      entry.callers += 1
    } else {
      lastNumber += 1
      entry = Entry(number: lastNumber, request: makeRequest(), callers: 1)
    }
    entries[key] = entry
    return Place(request: entry.request, number: entry.number, callers: entry.callers)
  }

  enum Leave {
    /// Others still wait, or the request is over.
    case nothing
    /// That was the last: the request is forgotten, and must be cancelled.
    case cancel
  }

  /// A caller goes, with a value or without one.
  mutating func leave(_ key: Key, number: UInt64) -> Leave {
    guard var entry = entries[key], entry.number == number else { return .nothing }
    entry.callers -= 1
    if entry.callers > 0 {
      entries[key] = entry
      return .nothing
    }
    entries[key] = nil
    return .cancel
  }

  /// A request is over, whether or not anybody still waits: who comes from here on starts another.
  ///
  /// - Returns: Whether anybody waited; false when it had been cancelled.
  mutating func finish(_ key: Key, number: UInt64) -> Bool {
    guard entries[key]?.number == number else { return false }
    entries[key] = nil
    return true
  }
}
