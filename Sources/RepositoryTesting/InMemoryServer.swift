internal import Multicast
public import Repository

/// An in-memory server that honors idempotency keys, for testing a source or a repository.
///
/// The server applies each mutation at most once, repeats its reply if an id is repeated, and counts the versions of
/// each value. Calls never wait. For delays and losses, use a ``SimulatedNetwork`` or a `Gate` between the server and
/// the repository.
public final class InMemoryServer<Key: RepositoryKey, Value: Equatable & Sendable, Mutation: RepositoryMutation<Value>>:
  Sendable
{
  /// A mutation that was applied.
  public struct Applied: Sendable {
    /// The id under which the mutation was sent.
    public let id: MutationID
    /// The key of the value that the mutation changed.
    public let key: Key
    /// The mutation.
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
  ///   - empty: The initial value of a key that isn't in `values`.
  ///   - values: The initial values by key.
  public init(empty: Value, values: [Key: Value] = [:]) {
    self.empty = empty
    state = Lock(State(values: values))
  }

  /// Returns the value of a key.
  public func value(of key: Key) -> Value {
    state.withLock { $0.values[key] } ?? empty
  }

  /// Returns the number of edits and applied mutations of a key's value.
  public func version(of key: Key) -> Int {
    state.withLock { $0.versions[key] } ?? 0
  }

  /// The applied mutations in order, each listed once.
  public var applied: [Applied] { state.withLock { $0.applied } }

  /// The ids of all received mutations in order, including repeated ones.
  public var received: [MutationID] { state.withLock { $0.received } }

  /// Changes a value, which simulates a change by another user.
  public func edit(_ key: Key, _ change: (inout Value) -> Void) {
    state.withLock { state in
      change(&state.values[key, default: empty])
      state.versions[key, default: 0] += 1
    }
  }

  /// Applies a mutation, unless a mutation with the same id was received before.
  ///
  /// - Returns: The value directly after the mutation was applied, even if the value has changed since.
  /// - Throws: The error of the mutation's `apply(to:)`, also for a repeated id.
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
  /// Returns a page of the value of a key, as a source would fetch it.
  ///
  /// The cursor of the next page is the description of the id of the page's last element. An unknown cursor returns the
  /// newest page.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - cursor: The cursor of the page; `nil` for the newest page.
  ///   - limit: The maximum number of elements in the page.
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
  /// Returns a page of the value of a key, with cursors in both directions, as a source would fetch it.
  ///
  /// The next cursor is the description of the id of the page's last element, and the previous cursor is that of the
  /// first element's id. An unknown cursor returns the newest page.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - cursor: The cursor of the page; `nil` for the newest page.
  ///   - limit: The maximum number of elements in the page.
  public func bidirectionalPage(of key: Key, after cursor: String?, limit: Int) -> Value {
    var page = page(of: key, after: cursor, limit: limit)
    page.previousCursor = previousCursor(of: page, key)
    return page
  }

  /// Returns the page that ends before an element.
  ///
  /// If the cursor is unknown, the page is empty.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - cursor: The description of the id of the element that follows the page.
  ///   - limit: The maximum number of elements in the page.
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
