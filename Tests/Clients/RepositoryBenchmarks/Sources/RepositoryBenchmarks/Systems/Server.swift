internal import Moments
internal import Repository
internal import Synchronization

/// The error of a request while the server can't be reached.
struct ServerUnreachable: Error {}

/// A server in this process, which replies immediately or can't be reached.
final class Server<Mutation: RepositoryMutation>: Sendable where Mutation.Value: Sendable {
  typealias Value = Mutation.Value

  /// A kind of reply to a change: an acknowledgment, or the changed value.
  enum ReplyKind {
    case done, value
  }

  private struct State {
    var isReachable = true
    var values: [String: Value] = [:]
    var answeredAt = ContinuousClock.now
  }

  /// The collection in which each system stores the values.
  let collection: String
  /// The kind of reply to a change; systems ignore the value that ``make(_:on:)`` returns if the kind is `done`.
  let replyKind: ReplyKind
  private let state = Mutex(State())
  private let initial: @Sendable (String) -> Value

  /// Creates a server.
  ///
  /// - Parameters:
  ///   - collection: The collection in which each system stores the values.
  ///   - replyKind: The kind of reply to a change.
  ///   - initial: Returns the initial value of a key.
  init(_ collection: String, _ replyKind: ReplyKind, initial: @escaping @Sendable (String) -> Value) {
    self.collection = collection
    self.replyKind = replyKind
    self.initial = initial
  }

  /// Sets whether the server can be reached.
  func setReachable(_ isReachable: Bool) {
    state.withLock { $0.isReachable = isReachable }
  }

  /// The time of the last reply to a change.
  var answeredAt: ContinuousClock.Instant { state.withLock { $0.answeredAt } }

  /// Returns the value of a key, even while the server can't be reached.
  func value(of key: String) -> Value {
    state.withLock { $0.values[key] } ?? initial(key)
  }

  /// Returns the value of a key, if the server can be reached.
  func fetch(_ key: String) throws(ServerUnreachable) -> Value {
    guard state.withLock({ $0.isReachable }) else { throw ServerUnreachable() }
    return value(of: key)
  }

  /// Makes a change, and returns the changed value.
  func make(_ mutation: Mutation, on key: String) throws(ServerUnreachable) -> Value {
    let changed = state.withLock { state -> Value? in
      guard state.isReachable else { return nil }
      defer { state.answeredAt = .now }
      do throws(MutationConflict) {
        try mutation.apply(to: &state.values[key, default: initial(key)])
      } catch {
        preconditionFailure("A change of a benchmark must not conflict: \(error)")
      }
      return state.values[key]
    }
    guard let changed else { throw ServerUnreachable() }
    return changed
  }
}

extension Server<Raise> {
  /// Creates a server of counters, which acknowledges a change without a value.
  static func counters() -> Server { Server(Counter.collection, .done) { _ in Counter() } }
}

extension Server<MomentLike> {
  /// Creates a server of one timeline, which replies to a like with the whole timeline.
  static func timeline(moments count: Int) throws -> Server {
    let timeline = try Timelines.make(moments: count)
    return Server(Timelines.collection, .value) { _ in timeline }
  }
}
