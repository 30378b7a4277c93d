internal import Multicast
public import Repository

/// A server in memory that honours idempotency keys, for the tests of a source or a repository.
///
/// It applies each mutation once, answers a repeated id with the reply of the first time, and counts versions. Calls never
/// wait; put a ``SimulatedNetwork`` or a `Gate` between it and the repository for delays and losses.
public final class InMemoryServer<Key: RepositoryKey, Value: Equatable & Sendable, Mutation: RepositoryMutation<Value>>:
  Sendable
{
  /// A mutation that was applied.
  public struct Applied: Sendable {
    /// The id under which it was sent.
    public let id: MutationID
    /// The value that it changed.
    public let key: Key
    /// The change.
    public let mutation: Mutation
  }

  private struct State {
    var values: [Key: Value]
    var versions: [Key: Int] = [:]
    var applied: [Applied] = []
    var replies: [MutationID: Result<Value, MutationConflict>] = [:]
    var received: [MutationID] = []
  }

  private let state: Lock<State>
  private let empty: Value

  /// Creates a server.
  ///
  /// - Parameters:
  ///   - empty: What a key has that nothing was said of.
  ///   - values: What the other keys have.
  public init(empty: Value, values: [Key: Value] = [:]) {
    self.empty = empty
    state = Lock(State(values: values))
  }

  /// The value of a key.
  public func value(of key: Key) -> Value {
    state.withLock { $0.values[key] } ?? empty
  }

  /// How often the value of a key was changed.
  public func version(of key: Key) -> Int {
    state.withLock { $0.versions[key] } ?? 0
  }

  /// The mutations that were applied, in order, each once.
  public var applied: [Applied] { state.withLock { $0.applied } }

  /// The ids of all mutations that arrived, repeated ones included, in order.
  public var received: [MutationID] { state.withLock { $0.received } }

  /// Changes a value, as another user of the server does.
  public func edit(_ key: Key, _ change: (inout Value) -> Void) {
    state.withLock { state in
      change(&state.values[key, default: empty])
      state.versions[key, default: 0] += 1
    }
  }

  /// Applies a mutation, unless one with this id was applied before.
  ///
  /// - Returns: The value after the first time, even if it has changed since.
  /// - Throws: What the mutation's `apply(to:)` throws; the next time too.
  public func apply(_ mutation: Mutation, to key: Key, id: MutationID) throws(MutationConflict) -> Value {
    try state.withLock { state -> Result<Value, MutationConflict> in
      state.received.append(id)
      if let reply = state.replies[id] { return reply }
      var value = state.values[key] ?? empty
      let reply: Result<Value, MutationConflict>
      do throws(MutationConflict) {
        try mutation.apply(to: &value)
        state.values[key] = value
        state.versions[key, default: 0] += 1
        state.applied.append(Applied(id: id, key: key, mutation: mutation))
        reply = .success(value)
      } catch {
        reply = .failure(error)
      }
      state.replies[id] = reply
      return reply
    }.get()
  }
}

extension InMemoryServer where Value: PagedValue {
  /// Returns a page of the value of a key, as a source fetches it.
  ///
  /// The cursor of the next page is the description of the id of the page's last element. A cursor that names no element
  /// gives the newest page.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - cursor: Where the page begins; `nil` for the newest.
  ///   - limit: The most elements the page may have.
  public func page(of key: Key, after cursor: String?, limit: Int) -> Value {
    var page = value(of: key)
    let elements = page.elements
    let start = cursor.flatMap { cursor in elements.firstIndex { "\($0.id)" == cursor } }.map { $0 + 1 } ?? 0
    page.elements = Array(elements[start...].prefix(limit))
    let isLast = start + page.elements.count >= elements.count
    page.nextCursor = isLast ? nil : page.elements.last.map { "\($0.id)" }
    return page
  }
}

extension InMemoryServer where Value: BidirectionalPagedValue {
  /// Returns a page of the value of a key that is fetched in both directions, as a source fetches it.
  ///
  /// Cursors are the descriptions of ids: the next page's that of the page's last element, the previous page's that of its
  /// first one. A cursor that names no element gives the newest page.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - cursor: Where the page begins; `nil` for the newest.
  ///   - limit: The most elements the page may have.
  public func bidirectionalPage(of key: Key, after cursor: String?, limit: Int) -> Value {
    var page = page(of: key, after: cursor, limit: limit)
    page.previousCursor = previousCursor(of: page, key)
    return page
  }

  /// Returns the page that ends before an element; none if the cursor names none.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - cursor: The description of the id of the element that follows the page.
  ///   - limit: The most elements the page may have.
  public func bidirectionalPage(of key: Key, before cursor: String, limit: Int) -> Value {
    var page = value(of: key)
    let end = page.elements.firstIndex { "\($0.id)" == cursor } ?? 0
    page.elements = Array(page.elements[..<end].suffix(limit))
    page.nextCursor = page.elements.last.map { "\($0.id)" }
    page.previousCursor = previousCursor(of: page, key)
    return page
  }

  private func previousCursor(of page: Value, _ key: Key) -> String? {
    guard let first = page.elements.first, first.id != value(of: key).elements.first?.id else { return nil }
    return "\(first.id)"
  }
}
