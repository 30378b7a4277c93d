internal import Moments
internal import Repository
internal import Synchronization

/// Why a request failed: the server is switched off.
struct ServerUnreachable: Error {}

/// A server in this process, which answers at once or can't be reached.
final class Server<Mutation: RepositoryMutation>: Sendable where Mutation.Value: Sendable {
  typealias Value = Mutation.Value

  /// The answer to a change: that it is made, or the value with it.
  enum Reply {
    case done, value
  }

  private struct State {
    var isReachable = true
    var values: [String: Value] = [:]
    var answeredAt = ContinuousClock.now
  }

  /// The collection in which a system keeps the values.
  let collection: String
  /// What the server says when it has made a change.
  let reply: Reply
  private let state = Mutex(State())
  private let initial: @Sendable (String) -> Value

  /// Creates a server.
  ///
  /// - Parameters:
  ///   - collection: The collection in which a system keeps the values.
  ///   - reply: What it says when it has made a change.
  ///   - initial: Returns the value of a key that was never changed.
  init(_ collection: String, _ reply: Reply, initial: @escaping @Sendable (String) -> Value) {
    self.collection = collection
    self.reply = reply
    self.initial = initial
  }

  /// Switches the server on or off.
  func setReachable(_ isReachable: Bool) {
    state.withLock { $0.isReachable = isReachable }
  }

  /// When the server answered the last change.
  var answeredAt: ContinuousClock.Instant { state.withLock { $0.answeredAt } }

  /// Returns the value of a key, also while the server can't be reached.
  func value(of key: String) -> Value {
    state.withLock { $0.values[key] } ?? initial(key)
  }

  /// Answers a request for the value of a key.
  func fetch(_ key: String) throws(ServerUnreachable) -> Value {
    guard state.withLock({ $0.isReachable }) else { throw ServerUnreachable() }
    return value(of: key)
  }

  /// Makes a change, and returns the value with it.
  func make(_ mutation: Mutation, on key: String) throws(ServerUnreachable) -> Value {
    let changed = state.withLock { state -> Value? in
      guard state.isReachable else { return nil }
      defer { state.answeredAt = .now }
      do throws(MutationConflict) {
        try mutation.apply(to: &state.values[key, default: initial(key)])
      } catch {
        preconditionFailure("Every change of a benchmark is possible: \(error)")
      }
      return state.values[key]
    }
    guard let changed else { throw ServerUnreachable() }
    return changed
  }
}

extension Server<Raise> {
  /// A server of counters, which answers a change with success and no more.
  static func counters() -> Server { Server(Counter.collection, .done) { _ in Counter() } }
}

extension Server<MomentLike> {
  /// A server of one timeline, which answers a like with the whole timeline.
  static func timeline(moments count: Int) throws -> Server {
    let timeline = try Timelines.make(moments: count)
    return Server(Timelines.collection, .value) { _ in timeline }
  }
}
